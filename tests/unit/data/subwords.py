"""A small vocabulary of subwords, as OpenSeq2Seq's scripts write it."""

from __future__ import annotations

# By which characters are spelled that the vocabulary lacks.
ESCAPES = list("\\_u;0123456789")
LETTERS = list("abcdefghijklmnop .,é")
LONGER = ["a_", "ab", "abc_", "b_", "c_", "d_", "e_", "g_", " ._", "cab", "café_"]
SUBWORDS = ["<pad>", "<EOS>", *LONGER, *LETTERS, *ESCAPES]
IDS = {subword: i for i, subword in enumerate(SUBWORDS)}


def write_vocabulary(path, subwords=SUBWORDS):
    path.write_bytes("".join(f"'{subword}'\n" for subword in subwords).encode())
    return str(path)


def ids_of(*subwords):
    return [IDS[subword] for subword in subwords]

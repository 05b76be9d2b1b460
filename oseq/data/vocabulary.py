"""Vocabulary files: one token per line, its place is its id."""

from __future__ import annotations

import os

from oseq.data.text_files import DataError, find_files, read_blocks
from oseq.data.tokenizer import UNK_ID

SPECIAL_TOKENS = ("<PAD>", "<EOS>", "<S>", "<UNK>")  # ids 0 to 3
_MAX_BYTES = 1 << 30
_MAX_TOKENS = 10_000_000
_BRACKETS = {("<", ">"), ("[", "]")}


def load_vocabulary(file: str, special_tokens_already_in_vocab: bool) -> list[str]:
    """Returns the tokens of a vocabulary file in the order of their ids.

    A line is ``token`` or ``token<TAB>count``; empty ones have no id. The first four
    ids are PAD, EOS, S and UNK: the file's first four lines, or put before its tokens.

    Raises:
      DataError: names file and line of the first mistake.
    """
    find_files(file)  # says what is wrong with a file that is not there
    if os.path.getsize(file) > _MAX_BYTES:
        raise DataError(f"{file}: larger than {_MAX_BYTES:,} bytes, no vocabulary")
    tokens = [] if special_tokens_already_in_vocab else list(SPECIAL_TOKENS)
    line_of: dict[str, int] = {}
    number = 0
    for block in read_blocks(file):
        for line in block:
            number += 1
            if not line:
                continue
            token = _token_of(line, f"{file}, line {number}")
            if token in line_of:
                raise DataError(
                    f"{file}, line {number}: {token!r} is already in "
                    f"line {line_of[token]}"
                )
            line_of[token] = number
            tokens.append(token)
        if number > _MAX_TOKENS:
            raise DataError(f"{file}: more than {_MAX_TOKENS:,} tokens")
    if special_tokens_already_in_vocab:
        _check_special_tokens(file, tokens)
    return tokens


def _token_of(line: str, place: str) -> str:
    token, tab, count = line.rpartition("\t")
    if not tab:
        token = line
    elif not _is_number(count):
        raise DataError(f"{place}: {line!r} is neither a token nor token<TAB>count")
    if not token:
        raise DataError(f"{place}: holds no token")
    return token


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _check_special_tokens(file: str, tokens: list[str]) -> None:
    """Refuses a vocabulary whose ordinary words would become control symbols."""
    first = tokens[: UNK_ID + 1]
    if len(first) <= UNK_ID or any((t[0], t[-1]) not in _BRACKETS for t in first):
        raise DataError(
            f"{file}: its first four tokens must be PAD, EOS, S and UNK (such as "
            f"{' '.join(SPECIAL_TOKENS)}), but are {' '.join(map(repr, first))}; "
            "for a file without them set special_tokens_already_in_vocab to False"
        )

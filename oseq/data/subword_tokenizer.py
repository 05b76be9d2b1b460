r"""Subwords of vocabulary files that OpenSeq2Seq's and Tensor2Tensor's scripts make.

A line is cut into runs of letters and digits and runs of anything else. One space
between two runs of letters is understood and gets no token. Each run is written with
escapes and ``_`` at its end, and then spelled by the longest subwords from the left.

| in a subword | in the text |
|---|---|
| ``_`` | the end of a run |
| ``\u`` | ``_`` |
| ``\\`` | ``\`` |
| ``\8364;`` | the character of this number, one that the vocabulary lacks |
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from oseq.config.params import ConfigError
from oseq.data.graph_tokenizer import GraphTokenizer
from oseq.data.text_files import DataError, find_files, read_blocks
from oseq.data.tokenizer import PAD_ID, Spelling, Tokenizer, flatten

RESERVED = ("<pad>", "<EOS>")  # ids 0 and 1
_ESCAPES = "\\_u;0123456789"
_ESCAPED = re.compile(r"\\u|\\\\|\\([0-9]+);")
_NO_CHARACTER = "\u3013"  # stands for a number that no character has
# Runs of letters and digits, and runs of all that is neither.
_RUNS = re.compile(r"[^\W_]+|[\W_]+")
_CACHED_RUNS = 1 << 20
_MAX_NAMED = 20  # characters in a message


class SubwordTokenizer(Tokenizer):
    """Spells every text there is: characters without a subword become escapes.

    The vocabulary has neither a start symbol nor one for the unknown: decoders begin
    with PAD, as OpenSeq2Seq's do on such data.

    Args:
      vocab_file: one subword per line, in quotes.
    """

    bos_id = PAD_ID
    unk_id = -1

    def __init__(self, vocab_file: str):
        self._vocab_file = vocab_file
        self._subwords = load_subwords(vocab_file)
        self._ids = {
            subword: i
            for i, subword in enumerate(self._subwords)
            if subword and i >= len(RESERVED)
        }
        self._longest = max(map(len, self._ids))
        self.vocab_size = len(self._subwords)
        content = json.dumps(["subwords", self._subwords])
        self.fingerprint = hashlib.sha256(content.encode()).hexdigest()
        # Most runs of a text are seen again and again.
        self._ids_of_run = functools.lru_cache(_CACHED_RUNS)(self._spell_run)

    def encode_lines(self, lines: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        return flatten([self._encode(line) for line in lines])

    def count_unknown(self, lines: Sequence[str]) -> Mapping[str, int]:
        return {}

    def clean(self, line: str) -> str:
        # The scripts that prepare records do the same.
        return line.strip()

    def in_graph(self, file: Path) -> GraphTokenizer:
        raise ConfigError(
            f"{self._vocab_file}: subwords with escapes cannot be spelled inside a "
            "graph; use --export_format=tflite, which takes ids"
        )

    def split_line(self, line: str) -> list[str]:
        return self._spell(self._encode(line), None).surfaces

    def _decode_text(self, ids: list[int]) -> str:
        return self._spell(ids, None).text

    def _spell(self, ids: list[int], unknown: Iterator[str] | None) -> Spelling:
        surfaces: list[str] = []
        run: list[str] = []  # subwords since the last end of a run
        was_word = False
        for place, subword in enumerate(map(self._subwords.__getitem__, ids)):
            run.append(subword)
            if not subword.endswith("_") and place < len(ids) - 1:
                continue
            parts = _unescaped(run)
            text = "".join(parts)
            if text:
                is_word = text[0].isalnum()
                if was_word and is_word:
                    first = next(i for i, part in enumerate(parts) if part)
                    parts[first] = " " + parts[first]
                was_word = is_word
            surfaces += parts
            run = []
        return Spelling("".join(surfaces), surfaces)

    def _encode(self, line: str) -> list[int]:
        runs = _RUNS.findall(line)
        last = len(runs) - 1
        spelled = (
            self._ids_of_run(run)
            for place, run in enumerate(runs)
            if run != " " or place in (0, last)
        )
        return list(itertools.chain.from_iterable(spelled))

    def _spell_run(self, run: str) -> list[int]:
        """Returns the ids of the longest subwords, from the left."""
        escaped = self._escaped(run)
        ids = []
        start = 0
        while start < len(escaped):
            found = None
            for end in range(min(len(escaped), start + self._longest), start, -1):
                found = self._ids.get(escaped[start:end])
                if found is not None:
                    break
            # All single characters of an escaped run are subwords.
            assert found is not None
            ids.append(found)
            start = end
        return ids

    def _escaped(self, run: str) -> str:
        run = run.replace("\\", "\\\\").replace("_", "\\u")
        known = self._ids
        return "".join(c if c in known else f"\\{ord(c)};" for c in run) + "_"


def load_subwords(file: str) -> list[str]:
    """Returns the subwords of a vocabulary file in the order of their ids.

    Raises:
      DataError: names file and line of the first mistake.
    """
    find_files(file)  # says what is wrong with a file that is not there
    line_of: dict[str, int] = {}
    lines = itertools.chain.from_iterable(read_blocks(file))
    for number, line in enumerate(lines, 1):
        quoted = line.strip()
        if len(quoted) < 2 or quoted[0] != quoted[-1] or quoted[0] not in "'\"":
            raise DataError(
                f"{file}, line {number}: expected a subword in quotes, got {line!r}"
            )
        subword = quoted[1:-1]
        if subword in line_of:
            raise DataError(
                f"{file}, line {number}: {subword!r} is already in "
                f"line {line_of[subword]}"
            )
        line_of[subword] = number
    subwords = [*RESERVED, *(each for each in line_of if each not in RESERVED)]
    characters = _ESCAPES + "".join(subwords[len(RESERVED) :])
    missing = [each for each in dict.fromkeys(characters) if each not in line_of]
    if missing:
        raise DataError(
            f"{file}: is no vocabulary of subwords, or not a whole one: it lacks "
            f"{' '.join(missing[:_MAX_NAMED])}, which must be subwords, too"
        )
    return subwords


def _unescaped(run: list[str]) -> list[str]:
    """Returns the text of each subword of a run.

    Where an escape spans several, all of the text is that of the last one.
    """
    text = _unescape("".join(run))
    parts = [_unescape(subword) for subword in run]
    if "".join(parts) != text:
        return [""] * (len(run) - 1) + [text]
    return parts


def _unescape(escaped: str) -> str:
    return _ESCAPED.sub(_character, escaped.replace("_", ""))


def _character(escape: re.Match[str]) -> str:
    number = escape.group(1)
    if number is None:
        return "_" if escape.group() == "\\u" else "\\"
    try:
        character = chr(int(number))
        character.encode()  # surrogates are no characters
    except (ValueError, OverflowError):
        return _NO_CHARACTER
    return character

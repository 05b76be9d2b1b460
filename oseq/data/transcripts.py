"""Transcripts as their alphabet can write them."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from oseq.data.tokenizer import Tokenizer


class Transcripts(NamedTuple):
    """Transcripts after what is to be done about unknown characters.

    Attributes:
      lines: as many as before.
      unknown: how often each character occurred that the alphabet does not have.
      first: the line that each of them is in first.
      written: what stands for such characters now; "" where they are left out.
    """

    lines: list[str]
    unknown: Counter[str]
    first: dict[str, int]
    written: dict[str, str]


def prepare_transcripts(
    lines: Sequence[str], tokenizer: Tokenizer, policy: str
) -> Transcripts:
    """Returns transcripts without characters that the alphabet does not have.

    Args:
      lines: one transcript each.
      tokenizer: whose alphabet it is.
      policy: "error" leaves all as it is; "drop" leaves unknown characters out; "map"
        tries the other case and the letter without its accents before.
    """
    if policy == "map":
        lines = [unicodedata.normalize("NFC", line) for line in lines]
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(line)
    unknown = Counter(
        {
            character: count
            for character, count in counts.items()
            if tokenizer.count_unknown([character])
        }
    )
    first: dict[str, int] = {}
    for number, line in enumerate(lines):
        for character in unknown.keys() & line:
            first.setdefault(character, number)
    if policy == "error" or not unknown:
        return Transcripts(list(lines), unknown, first, {})
    written = {
        character: _known_form(character, tokenizer) if policy == "map" else ""
        for character in unknown
    }
    table = str.maketrans(written)
    rewritten = [_rewrite(line, table) for line in lines]
    return Transcripts(rewritten, unknown, first, written)


def _known_form(character: str, tokenizer: Tokenizer) -> str:
    """Returns the first form of a character that the alphabet has, or ""."""
    parts = unicodedata.normalize("NFKD", character)
    plain = "".join(part for part in parts if not unicodedata.combining(part))
    for form in (character, plain):
        for candidate in (form, form.lower(), form.upper()):
            if candidate and not tokenizer.count_unknown([candidate]):
                return candidate
    return ""


def _rewrite(line: str, table: dict[int, str]) -> str:
    """Returns a line with other characters, and without gaps where some were."""
    changed = line.translate(table)
    return line if changed == line else re.sub(" {2,}", " ", changed).strip()

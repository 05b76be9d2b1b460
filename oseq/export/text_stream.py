"""Text of ids that come bit by bit."""

from __future__ import annotations

from collections.abc import Callable

Decode = Callable[[list[int]], str]

# An id's text depends on the ids before it: SentencePiece takes a space away at the
# beginning, and a character may be spelled by up to four bytes with an id each.
_CONTEXT = 16
_MOST_IDS = 64
_INCOMPLETE = "\ufffd"  # what a byte is spelled as while others of its character lack
_MOST_BYTES = 3  # of a character that lacks one


class TextStream:
    """Spells ids as they come; all pieces together are the text of all ids.

    Of the ids that were spelled only the last ones are kept.

    Args:
      decode: from ids, at least one, to text, which may lose spaces around it. More
        ids make a text longer, and change none of it but the bytes of a character that
        was incomplete.
    """

    def __init__(self, decode: Decode):
        self._decode = decode
        self._ids: list[int] = []
        self._written = 0  # characters of the text of these ids

    def feed(self, ids: list[int]) -> str:
        """Returns the text that new ids add, but for an incomplete character."""
        if not ids:
            return ""
        self._ids += ids
        text = _complete(self._decode(self._ids))
        new, self._written = text[self._written :], len(text)
        if len(self._ids) > _MOST_IDS:
            context = self._ids[-_CONTEXT:]
            written = len(_complete(self._decode(context)))
            if written:  # spaces alone would not part what follows from a word before
                self._ids, self._written = context, written
        return new

    def finish(self) -> str:
        """Returns what was held back, and begins anew."""
        rest = self._decode(self._ids)[self._written :] if self._ids else ""
        self._ids, self._written = [], 0
        return rest


def _complete(text: str) -> str:
    """Returns a text without what may still become a character at its end."""
    for _ in range(_MOST_BYTES):
        text = text.removesuffix(_INCOMPLETE)
    return text

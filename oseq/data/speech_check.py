"""What is wrong with the utterances of a mode, found before any work begins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from oseq.data.audio_index import AudioIndex
from oseq.data.speech_manifest import Utterance
from oseq.data.tokenized_text import TokenizedText
from oseq.data.transcripts import Transcripts

_MAX_NAMED = 5


class Finding(NamedTuple):
    """Utterances that the same is wrong with."""

    what: str
    rows: np.ndarray  # [found] int64
    detail: Callable[[int], str] = lambda row: ""  # beside name and place

    def describe(self, utterances: Sequence[Utterance]) -> str:
        """Returns how many there are, and the first of them."""
        named = []
        for row in self.rows[:_MAX_NAMED].tolist():
            each = utterances[row]
            place = f" ({each.place})" if each.is_listed else ""
            named.append(f"{each.name}{place}{self.detail(row)}".strip())
        more = ", ..." if len(self.rows) > _MAX_NAMED else ""
        return f"{self.what}: {len(self.rows):,}: {', '.join(named)}{more}"


def find_bad_audio(
    utterances: Sequence[Utterance],
    index: AudioIndex,
    num_samples: np.ndarray,
) -> list[Finding]:
    """Returns the utterances without sound, as far as headers tell.

    Args:
      utterances: all.
      index: of their files.
      num_samples: [utterances] int64, what is to be read of each.
    """
    has_problem = np.zeros(len(index.paths), bool)
    has_problem[list(index.problems)] = True
    is_blank = np.array([not each.name for each in utterances], bool)
    is_missing = index.is_missing[index.rows] & ~is_blank
    is_unreadable = has_problem[index.rows] & ~is_missing & ~is_blank
    is_empty = (num_samples == 0) & ~is_missing & ~is_unreadable & ~is_blank

    def reason(row: int) -> str:
        return _reason(index.problem(row) or "", index.path(row))

    findings = [
        Finding("blank lines", np.flatnonzero(is_blank)),
        Finding("missing audio files", np.flatnonzero(is_missing)),
        Finding("unreadable audio files", np.flatnonzero(is_unreadable), reason),
        Finding("audio without a single sample", np.flatnonzero(is_empty)),
    ]
    return [finding for finding in findings if len(finding.rows)]


def find_damage(damage: Mapping[int, str], index: AudioIndex) -> list[Finding]:
    """Returns the utterances that could not be read, by what is wrong with each."""
    if not damage:
        return []
    return [
        Finding(
            "damaged audio files",
            np.array(list(damage), np.int64),
            lambda row: _reason(damage[row], index.path(row)),
        )
    ]


def _reason(problem: str, path: str) -> str:
    return f": {problem.removeprefix(path + ': ')}"


def find_too_long(
    text: TokenizedText, num_positions: np.ndarray, subsampling: int
) -> Finding:
    """Returns the utterances whose transcripts CTC cannot align with their frames.

    It needs a frame for each label, and one more between two equal ones.

    Args:
      text: transcripts.
      num_positions: [utterances] int64, what the encoder makes of each.
      subsampling: frames of each position, to be named in the message.
    """
    needed = num_labels_and_repeats(text)
    rate = f" / {subsampling}" if subsampling > 1 else ""
    return Finding(
        f"transcripts with more labels and repeats than frames{rate}",
        np.flatnonzero(needed > num_positions),
        lambda row: f": {needed[row]} against {num_positions[row]}",
    )


def find_durations(
    seconds: np.ndarray, minimum: float | None, maximum: float | None
) -> list[Finding]:
    """Returns the utterances [utterances] that are shorter or longer than allowed."""
    findings = []
    if minimum is not None:
        rows = np.flatnonzero(seconds < minimum)
        findings.append(Finding(f"shorter than min_duration {minimum:g} s", rows))
    if maximum is not None:
        rows = np.flatnonzero(seconds > maximum)
        findings.append(Finding(f"longer than max_duration {maximum:g} s", rows))
    return findings


def num_labels_and_repeats(text: TokenizedText) -> np.ndarray:
    """Returns the frames that CTC needs at least for each line, [lines] int64."""
    ids, offsets = np.asarray(text.ids), np.asarray(text.offsets)
    is_repeat = np.zeros(len(ids) + 1, np.int64)
    is_repeat[1 : len(ids)] = ids[1:] == ids[:-1]
    is_repeat[offsets] = 0  # the first of a line repeats nothing
    before = np.concatenate([[0], np.cumsum(is_repeat)])
    return text.lengths + before[offsets[1:]] - before[offsets[:-1]]


def describe_unknown(
    unknown: Mapping[str, int],
    transcripts: Transcripts,
    utterances: Sequence[Utterance],
) -> str:
    """Returns how often characters occur, what is written instead, and where.

    Args:
      unknown: those to be told of, with their counts.
      transcripts: that they occur in.
      utterances: of the transcripts.
    """
    frequent = Counter(unknown).most_common(2 * _MAX_NAMED)
    named = []
    for character, count in frequent:
        form = transcripts.written.get(character)
        arrow = f" -> {form!r}" if form else ""
        place = utterances[transcripts.first[character]].place
        named.append(f"{character!r}{arrow} {count:,} (first: {place})")
    more = ", ..." if len(unknown) > len(frequent) else ""
    return f"{sum(unknown.values()):,}: {', '.join(named)}{more}"

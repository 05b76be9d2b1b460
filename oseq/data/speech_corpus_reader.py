"""Reads and checks the utterances of a mode, and finds out which are examples."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from oseq.data.audio_cache import AudioCache, load_or_write_audio
from oseq.data.audio_features import AudioFeatures
from oseq.data.audio_files import num_samples_at, read_audio
from oseq.data.audio_index import AudioIndex, find_unreadable, index_audio
from oseq.data.speech_check import (
    Finding,
    describe_unknown,
    find_bad_audio,
    find_damage,
    find_durations,
    find_too_long,
)
from oseq.data.speech_corpus import SpeechCorpus
from oseq.data.speech_manifest import Utterance
from oseq.data.text_files import DataError
from oseq.data.token_cache import default_cache_dir, load_or_write
from oseq.data.tokenized_text import TokenizedText, tokenize
from oseq.data.tokenizer import Tokenizer
from oseq.data.transcripts import Transcripts, prepare_transcripts

_LINES_AT_A_TIME = 10_000
_log = logging.getLogger(__name__)


class SpeechCorpusReader:
    """Reads and checks utterances as a mode wants them.

    Args:
      params: of the data layer, complete.
      mode: of the data layer.
      features: tell how many frames sound has.
      tokenizer: of the transcripts.
      is_chief: whether what is found is logged.
    """

    def __init__(
        self,
        params: Mapping[str, Any],
        mode: str,
        features: AudioFeatures,
        tokenizer: Tokenizer,
        is_chief: bool,
    ):
        self._params = params
        self._mode = mode
        self._features = features
        self._tokenizer = tokenizer
        self._is_chief = is_chief
        # infer and score read what they are given once.
        self._is_kept = mode in ("train", "eval")

    def read(
        self, utterances: Sequence[Utterance], files: Sequence[str]
    ) -> SpeechCorpus:
        """Returns the corpus of utterances.

        Args:
          utterances: with transcripts in all modes but infer.
          files: that they are from; none where they were typed.

        Raises:
          DataError: what is wrong with them, all of it.
        """
        cache_dir = None
        if self._is_kept:
            cache_dir = self._params["cache_dir"] or default_cache_dir(files[0])
        index = index_audio(utterances, cache_dir)
        num_samples = self._num_samples(utterances, index)
        bad = find_bad_audio(utterances, index, num_samples)
        problems = self._judge_audio(bad, utterances)
        transcripts = None
        if self._mode != "infer":
            transcripts = self._transcripts(utterances)
            problems += self._judge_characters(transcripts, utterances)
        if problems:
            raise DataError(problems)
        text = None
        if transcripts is not None:
            text = self._tokenized(transcripts.lines, files, cache_dir)
        num_frames = self._features.num_frames(num_samples)
        is_bad = _mask(bad, len(utterances))
        is_left_out = _mask(
            self._left_out(utterances, num_samples, num_frames, text, is_bad),
            len(utterances),
        )
        examples = np.flatnonzero(~is_bad & ~is_left_out)
        cache, damage = self._read_all(examples, utterances, index, cache_dir)
        damaged = find_damage(damage, index)
        problems = self._judge_audio(damaged, utterances)
        if problems:
            raise DataError(problems)
        is_bad |= _mask(damaged, len(utterances))
        examples = np.flatnonzero(~is_bad & ~is_left_out)
        self._log(
            f"{len(utterances):,} utterances, {len(examples):,} examples, "
            f"{num_samples[examples].sum() / self._features.sample_freq / 3600:.2f} h",
            level=logging.INFO,
        )
        return SpeechCorpus(
            utterances,
            index,
            text,
            examples,
            num_frames[examples],
            np.flatnonzero(is_bad),
            cache,
        )

    def _read_all(
        self,
        rows: np.ndarray,
        utterances: Sequence[Utterance],
        index: AudioIndex,
        cache_dir: str | None,
    ) -> tuple[AudioCache | None, dict[int, str]]:
        """Decodes utterances, to keep their samples or to find out which are damaged.

        In train, where none is kept, that would take as long as an epoch: damage shows
        when it is met. Elsewhere results are not to depend on who meets it.
        """
        rate = self._features.sample_freq

        def read(row: int) -> np.ndarray:
            each = utterances[row]
            return read_audio(index.path(row), rate, each.offset, each.duration)

        if cache_dir is not None and self._params["cache_audio"]:
            pieces = [(each.offset, each.duration) for each in utterances]
            key = (rate, index.fingerprint, index.rows.tolist(), pieces)
            return load_or_write_audio(rows, read, key, cache_dir)
        if self._mode == "train":
            return None, {}
        return None, find_unreadable(rows.tolist(), read, "checking audio")

    def _num_samples(
        self, utterances: Sequence[Utterance], index: AudioIndex
    ) -> np.ndarray:
        """Returns the samples of each utterance at the rate of the features."""
        rate = self._features.sample_freq
        counts = (
            0
            if index.problem(row) is not None
            else num_samples_at(index.header(row), rate, each.offset, each.duration)
            for row, each in enumerate(utterances)
        )
        return np.fromiter(counts, np.int64, count=len(utterances))

    def _judge_audio(
        self, bad: Sequence[Finding], utterances: Sequence[Utterance]
    ) -> list[str]:
        """Returns what is an error; logs what is none."""
        if self._mode == "score":  # as many answers as pairs, none of them made up
            return [each.describe(utterances) for each in bad]
        if self._mode != "infer" and self._params["bad_examples"] == "error":
            hint = "bad_examples: 'drop' leaves such utterances out"
            return [f"{each.describe(utterances)}; {hint}" for each in bad]
        action = "answered by a blank line" if self._mode == "infer" else "dropped"
        problems = []
        for finding in bad:
            alone = [n for n in finding.rows if not utterances[n].is_listed]
            if alone:  # only infer reads audio files by themselves
                rows = np.array(alone)
                problems.append(finding._replace(rows=rows).describe(utterances))
            else:
                self._log(f"{finding.describe(utterances)}; {action}")
        return problems

    def _transcripts(self, utterances: Sequence[Utterance]) -> Transcripts:
        lines = [each.text or "" for each in utterances]
        policy = self._params["unknown_characters"]
        return prepare_transcripts(lines, self._tokenizer, policy)

    def _judge_characters(
        self, transcripts: Transcripts, utterances: Sequence[Utterance]
    ) -> list[str]:
        """Returns the error that unknown characters are; logs what is none."""
        if not transcripts.unknown:
            return []
        unknown, written = transcripts.unknown, transcripts.written
        what = "characters outside the alphabet"
        if self._params["unknown_characters"] == "error":
            description = describe_unknown(unknown, transcripts, utterances)
            hint = "unknown_characters: 'map' or 'drop' rewrites such transcripts"
            return [f"{what}: {description}; {hint}"]
        mapped = {each: unknown[each] for each, form in written.items() if form}
        dropped = {each: unknown[each] for each, form in written.items() if not form}
        for found, action, level in (
            (mapped, "mapped", logging.INFO),
            (dropped, "dropped", logging.WARNING),
        ):
            if found:
                description = describe_unknown(found, transcripts, utterances)
                self._log(f"{what}, {action}: {description}", level)
        return []

    def _tokenized(
        self, lines: Sequence[str], files: Sequence[str], cache_dir: str | None
    ) -> TokenizedText:
        if not self._is_kept:
            return tokenize(lines, self._tokenizer)
        blocks = (
            tokenize(lines[first : first + _LINES_AT_A_TIME], self._tokenizer)
            for first in range(0, len(lines), _LINES_AT_A_TIME)
        )
        part = f"transcripts {self._params['unknown_characters']}"
        return load_or_write(files, self._tokenizer, cache_dir, blocks, part)

    def _left_out(
        self,
        utterances: Sequence[Utterance],
        num_samples: np.ndarray,
        num_frames: np.ndarray,
        text: TokenizedText | None,
        is_bad: np.ndarray,
    ) -> list[Finding]:
        """Returns what training can do without; logs it."""
        findings = []
        if text is not None:
            subsampling = self._params["subsampling"] or 1
            too_long = find_too_long(text, -(-num_frames // subsampling), subsampling)
            findings.append(too_long)
        if self._mode == "train":
            findings += find_durations(
                num_samples / self._features.sample_freq,
                self._params["min_duration"],
                self._params["max_duration"],
            )
        action = "dropped" if self._mode == "train" else "kept"
        findings = [
            each._replace(rows=each.rows[~is_bad[each.rows]]) for each in findings
        ]
        for finding in findings:
            if len(finding.rows):
                self._log(f"{finding.describe(utterances)}; {action}")
        return findings if self._mode == "train" else []

    def _log(self, message: str, level: int = logging.WARNING) -> None:
        if self._is_chief:
            _log.log(level, "%s: %s", self._mode, message)


def _mask(findings: Sequence[Finding], size: int) -> np.ndarray:
    """Returns [size] bool: True where something was found."""
    mask = np.zeros(size, bool)
    for finding in findings:
        mask[finding.rows] = True
    return mask

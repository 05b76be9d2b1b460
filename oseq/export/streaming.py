"""Speech to text while it is spoken: chunks of sound in, text out."""

from __future__ import annotations

import dataclasses
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import yaml

from oseq.config.params import UserError
from oseq.export.metadata import METADATA
from oseq.export.text_stream import Decode, TextStream
from oseq.search.ctc_stream import CTCStream

# samples [N] float32 -> log-probabilities [S', V] float32
Frames = Callable[[np.ndarray], np.ndarray]

_log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class StreamWindow:
    """What the model sees around the sound whose text is wanted next, in seconds.

    Where ``before`` and ``after`` reach as far as the model does, and its features are
    normalized by fixed statistics, the text is that of the whole at once. A model of
    causal layers needs no ``after``; one whose layers see everything gets the better
    the more it sees.

    Args:
      chunk: how much is transcribed at a time; text comes this late, and ``after``.
      before: what lies before the chunk.
      after: what lies behind it.
    """

    chunk: float = 0.5
    before: float = 2.0
    after: float = 0.5


class StreamingTranscriber:
    """Takes sound in chunks of any size and returns the text that has become sure.

    A window slides over the sound; of the frames that a CTC model makes of it only
    those of the chunk in its middle are kept. Repetitions are taken for one across
    windows as within them.

    Args:
      frames: the model: from samples to log-probabilities of frames.
      decode: from ids to text.
      blank: id of CTC's blank.
      never: ids that no text is made of.
      sample_freq: Hz.
      samples_per_frame: hop of ``frames``.
      overlap: samples that the last frame of features reaches behind the frames of
        the model that are made of it: its window without its stride.
      window: what the model sees; ``before`` and ``after`` are rounded up to whole
        frames.
    """

    _sound: np.ndarray  # [N] float32, what may still be seen
    _model: Any = None  # has to live as long as its signatures

    def __init__(
        self,
        frames: Frames,
        decode: Decode,
        *,
        blank: int,
        never: Sequence[int] = (),
        sample_freq: int,
        samples_per_frame: int,
        overlap: int,
        window: StreamWindow = StreamWindow(),
    ):
        self._frames = frames
        self._text = TextStream(decode)
        self._hop = samples_per_frame
        self._overlap = overlap
        self._stream = CTCStream(blank, never)
        self._chunk, self._before, self._after = (
            _in_frames(seconds, sample_freq / samples_per_frame)
            for seconds in (window.chunk, window.before, window.after)
        )
        self._chunk = max(1, self._chunk)
        self._start_again()

    @classmethod
    def from_export(
        cls, folder: str | Path, window: StreamWindow = StreamWindow()
    ) -> StreamingTranscriber:
        """Returns a transcriber that uses an exported CTC model.

        What keeps its text from being that of the whole at once is logged.

        Raises:
          UserError: the folder holds none.
        """
        speech = _speech_of(folder)
        for problem in _problems_of(speech, window):
            _log.warning("%s: %s", folder, problem)
        model = tf.saved_model.load(str(folder))
        signatures = model.signatures

        def frames(samples: np.ndarray) -> np.ndarray:
            found = signatures["frames"](
                samples=tf.constant(samples[np.newaxis]),
                length=tf.constant([len(samples)]),
            )
            return found["log_probabilities"][0, : found["length"][0]].numpy()

        def decode(ids: list[int]) -> str:
            given = tf.constant([ids], tf.int32)
            found = signatures["text"](ids=given, length=tf.constant([len(ids)]))
            return found["text"].numpy()[0].decode()

        transcriber = cls(
            frames,
            decode,
            blank=speech["blank"],
            never=speech["never"],
            sample_freq=speech["sample_freq"],
            samples_per_frame=speech["samples_per_frame"],
            overlap=speech["window_size"] - speech["window_stride"],
            window=window,
        )
        transcriber._model = model
        return transcriber

    def feed(self, samples: np.ndarray) -> str:
        """Takes the next samples [N] float32; returns the text that they complete.

        Raises:
          UserError: the model gave fewer frames than a chunk has.
        """
        self._sound = np.concatenate([self._sound, np.asarray(samples, np.float32)])
        ids: list[int] = []
        while self._num_samples() >= self._needed():
            ids += self._read_chunk()
        return self._text.feed(ids)

    def finish(self) -> str:
        """Returns the text of what is left, and begins anew."""
        ids = self._read_rest()
        text = self._text.feed(ids) + self._text.finish()
        self._start_again()
        return text

    def _start_again(self) -> None:
        self._sound = np.zeros(0, np.float32)
        self._first = 0  # frame that the sound begins with
        self._next = 0  # frame that is transcribed next
        self._stream.reset()

    def _num_samples(self) -> int:
        """Returns how many samples there were since the beginning."""
        return self._first * self._hop + len(self._sound)

    def _needed(self) -> int:
        """Returns how many samples there must be for the text of the next chunk."""
        num_frames = self._next + self._chunk + self._after
        return num_frames * self._hop + self._overlap

    def _read_chunk(self) -> list[int]:
        """Returns the ids of the next chunk, all of whose window is there."""
        sound = self._sound[: self._needed() - self._first * self._hop]
        frames = self._frames(sound)[self._next - self._first :][: self._chunk]
        if len(frames) < self._chunk:
            raise UserError(
                f"the model gave {len(frames)} of the {self._chunk} frames of a chunk: "
                "its layers have to see more behind it (StreamWindow: after)"
            )
        self._next += self._chunk
        first = max(0, self._next - self._before)
        self._sound = self._sound[(first - self._first) * self._hop :]
        self._first = first
        return self._stream.feed(frames)

    def _read_rest(self) -> list[int]:
        """Returns the ids of the frames that are left, if there are any."""
        begun = self._next * self._hop + (self._overlap if self._next else 0)
        if self._num_samples() <= begun:
            return []
        frames = self._frames(self._sound)
        return self._stream.feed(frames[self._next - self._first :])


def _in_frames(seconds: float, frames_per_second: float) -> int:
    """Returns how many frames hold so many seconds."""
    return max(0, math.ceil(seconds * frames_per_second - 1e-6))


def _speech_of(folder: str | Path) -> dict[str, Any]:
    """Returns what an export's metadata say of a CTC model."""
    path = Path(folder) / METADATA
    if not path.is_file():
        raise UserError(f"{folder}: no export; {METADATA} is missing")
    speech = yaml.safe_load(path.read_text(encoding="utf-8")).get("speech")
    if speech is None or speech["samples_per_frame"] is None:
        raise UserError(f"{folder}: no CTC model, whose frames a stream is made of")
    return speech


def _problems_of(speech: Mapping[str, Any], window: StreamWindow) -> list[str]:
    """Returns why the text of a stream may differ from that of the whole at once."""
    problems = []
    if speech["by_utterance"]:
        keys = ", ".join(speech["by_utterance"])
        problems.append(
            f"the model normalizes by the whole utterance ({keys}: None), a stream by "
            "its window: its text will differ"
        )
    stride, hop = speech["window_stride"], speech["samples_per_frame"]
    if speech["lookahead"] is None:
        problems.append("the model's layers see all that follows, a stream its window")
        return problems
    # The last frame of a chunk has its own frames of features without looking ahead.
    ahead = (speech["lookahead"] + 1) * stride - hop  # samples
    if _in_frames(window.after, speech["sample_freq"] / hop) * hop < ahead:
        problems.append(
            f"the model's layers see {ahead / speech['sample_freq']:g} s behind a "
            f"chunk, the stream {window.after:g} s (StreamWindow: after)"
        )
    return problems

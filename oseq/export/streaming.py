"""Speech to text while it is spoken: chunks of sound in, text out."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import yaml

from oseq.config.params import UserError
from oseq.export.metadata import METADATA
from oseq.search.ctc_stream import CTCStream

# samples [N] float32 -> log-probabilities [S', V] float32
Frames = Callable[[np.ndarray], np.ndarray]


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
      text: from ids to text.
      blank: id of CTC's blank.
      never: ids that no text is made of.
      sample_freq: Hz.
      samples_per_frame: hop of ``frames``.
      window: what the model sees.
    """

    _sound: np.ndarray  # [N] float32, what may still be seen
    _model: Any = None  # has to live as long as its signatures

    def __init__(
        self,
        frames: Frames,
        text: Callable[[Sequence[int]], str],
        *,
        blank: int,
        never: Sequence[int] = (),
        sample_freq: int,
        samples_per_frame: int,
        window: StreamWindow = StreamWindow(),
    ):
        self._frames = frames
        self._text = text
        self._hop = samples_per_frame
        self._stream = CTCStream(blank, never)

        def in_frames(seconds: float) -> int:
            return max(0, round(seconds * sample_freq / samples_per_frame))

        self._chunk = max(1, in_frames(window.chunk))
        self._before = in_frames(window.before)
        # The last frame of a chunk ends a little behind the chunk.
        self._after = max(1, in_frames(window.after))
        self._start_again()

    @classmethod
    def from_export(
        cls, folder: str | Path, window: StreamWindow = StreamWindow()
    ) -> StreamingTranscriber:
        """Returns a transcriber that uses an exported CTC model.

        Raises:
          UserError: the folder holds none.
        """
        path = Path(folder) / METADATA
        if not path.is_file():
            raise UserError(f"{folder}: no export; {METADATA} is missing")
        speech = yaml.safe_load(path.read_text(encoding="utf-8")).get("speech")
        if speech is None or speech["samples_per_frame"] is None:
            raise UserError(f"{folder}: no CTC model, whose frames a stream is made of")
        model = tf.saved_model.load(str(folder))
        signatures = model.signatures

        def frames(samples: np.ndarray) -> np.ndarray:
            found = signatures["frames"](
                samples=tf.constant(samples[np.newaxis]),
                length=tf.constant([len(samples)]),
            )
            return found["log_probabilities"][0, : found["length"][0]].numpy()

        def text(ids: Sequence[int]) -> str:
            given = tf.constant([list(ids)], tf.int32)
            found = signatures["text"](ids=given, length=tf.constant([len(ids)]))
            return found["text"].numpy()[0].decode()

        transcriber = cls(
            frames,
            text,
            blank=speech["blank"],
            never=speech["never"],
            sample_freq=speech["sample_freq"],
            samples_per_frame=speech["samples_per_frame"],
            window=window,
        )
        transcriber._model = model
        return transcriber

    def feed(self, samples: np.ndarray) -> str:
        """Takes the next samples [N] float32; returns the text that they complete."""
        self._sound = np.concatenate([self._sound, np.asarray(samples, np.float32)])
        while self._num_samples() >= self._needed() * self._hop:
            self._transcribe(self._chunk)
        return self._new_text()

    def finish(self) -> str:
        """Returns the text of what is left, and begins anew."""
        if self._num_samples() > self._next * self._hop:
            self._transcribe(None)
        text = self._new_text()
        self._start_again()
        return text

    def _start_again(self) -> None:
        self._sound = np.zeros(0, np.float32)
        self._first = 0  # frame that the sound begins with
        self._next = 0  # frame that is transcribed next
        self._ids: list[int] = []
        self._written = ""
        self._stream.reset()

    def _num_samples(self) -> int:
        """Returns how many samples there were since the beginning."""
        return self._first * self._hop + len(self._sound)

    def _needed(self) -> int:
        """Returns how many frames there must be before the next chunk has its text."""
        return self._next + self._chunk + self._after

    def _transcribe(self, num_frames: int | None) -> None:
        """Reads the next frames, or all that are left."""
        start = max(self._first, self._next - self._before)
        sound = self._sound[(start - self._first) * self._hop :]
        if num_frames is not None:
            end = self._needed() - start
            sound = sound[: end * self._hop]
        frames = self._frames(sound)[self._next - start :]
        if num_frames is not None:
            frames = frames[:num_frames]
        self._ids += self._stream.feed(frames)
        self._next += len(frames) if num_frames is None else num_frames
        kept = max(self._first, self._next - self._before)
        self._sound = self._sound[(kept - self._first) * self._hop :]
        self._first = kept

    def _new_text(self) -> str:
        text = self._text(self._ids) if self._ids else ""
        new, self._written = text[len(self._written) :], text
        return new

"""The audio and the transcripts of a mode."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from oseq.data.audio_cache import AudioCache
from oseq.data.audio_files import read_audio
from oseq.data.audio_index import AudioIndex
from oseq.data.speech_manifest import Utterance
from oseq.data.tokenized_text import TokenizedText


@dataclasses.dataclass(frozen=True)
class SpeechCorpus:
    """Utterances that were checked; some of them are examples.

    Attributes:
      utterances: all, whatever is wrong with them.
      index: of their files.
      text: the transcripts, rewritten in the alphabet; None in infer.
      examples: [examples] int64, the utterances that are examples.
      num_frames: [examples] int64, of each.
      blank: [blanks] int64, the utterances whose sound cannot be read.
      cache: of the examples' samples; None: their files are read each time.
    """

    utterances: Sequence[Utterance]
    index: AudioIndex
    text: TokenizedText | None
    examples: np.ndarray
    num_frames: np.ndarray
    blank: np.ndarray
    cache: AudioCache | None = None

    def read(self, utterance: int, sample_freq: int) -> np.ndarray:
        """Returns the samples of an utterance, [N] float32.

        Raises:
          DataError: its file has become unreadable, or holds what is no sound.
        """
        if self.cache is not None:
            return self.cache.read(utterance)
        each = self.utterances[utterance]
        path = self.index.path(utterance)
        return read_audio(path, sample_freq, each.offset, each.duration)

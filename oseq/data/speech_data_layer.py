"""Speech and what is said in it, from audio files to batches of features."""

from __future__ import annotations

import copy
import hashlib
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import tensorflow as tf

from oseq.config.params import ConfigError, Param
from oseq.config.plain import to_plain
from oseq.contracts import DataSpec, Position
from oseq.data.audio_augmentation import AudioAugmentation
from oseq.data.audio_features import AudioFeatures
from oseq.data.audio_files import speech_package
from oseq.data.delimited_tokenizer import DelimitedTokenizer
from oseq.data.graph_audio_front_end import GraphAudioFrontEnd
from oseq.data.planned_data_layer import PlannedDataLayer
from oseq.data.sentencepiece_tokenizer import SentencePieceTokenizer
from oseq.data.spec_augment import SpecAugment
from oseq.data.speech_batches import Randomness, SpeechBatches
from oseq.data.speech_corpus import SpeechCorpus
from oseq.data.speech_corpus_reader import SpeechCorpusReader
from oseq.data.speech_manifest import (
    STANDARD_INPUT,
    Utterance,
    plain_list,
    read_manifests,
)
from oseq.data.speech_params import FEATURE_KEYS, OPTIONAL_PARAMS, REQUIRED_PARAMS
from oseq.data.text_files import DataError
from oseq.data.tokenizer import Tokenizer
from oseq.distributed.chief_first import once_per_host
from oseq.distributed.worker import Worker

# Utterances change places between epochs where their lengths are alike up to this
# factor: hardly any two are equal to the frame.
_ALIKE = 1.05
_log = logging.getLogger(__name__)


class Speech2TextDataLayer(PlannedDataLayer):
    """Features of utterances, and their transcripts as ids.

    An example's id is its place in the manifests, from 0 on. Targets end with EOS.
    Augmentation and dither follow from seed, epoch and id alone, so that a run that is
    resumed reads the same.
    """

    front_end_keys = ("vocab_file", "bpe", *FEATURE_KEYS)
    input_keys = ("dataset_files",)

    @staticmethod
    def get_required_params() -> dict[str, Param]:
        return REQUIRED_PARAMS

    @staticmethod
    def get_optional_params() -> dict[str, Param]:
        return OPTIONAL_PARAMS

    def __init__(self, params: Mapping[str, Any], mode: str, worker: Worker):
        super().__init__(params, mode, worker)
        self._check_values()
        self._features = AudioFeatures(self.params)
        self._tokenizer = _make_tokenizer(self.params)
        self.seconds_per_position = self._features.stride / self._features.sample_freq
        self.subsampling = self.params["subsampling"]
        self._randomness = self._make_randomness() if mode == "train" else None
        tokenizer = self._tokenizer
        self.spec = DataSpec(
            target_vocab_size=tokenizer.vocab_size,
            num_features=self._features.num_features,
            pad_id=tokenizer.pad_id,
            eos_id=tokenizer.eos_id,
            bos_id=tokenizer.bos_id,
            unk_id=tokenizer.unk_id,
            symbols=_symbols(tokenizer),
        )
        self._warn_of_long_symbols()
        self.fingerprint = _fingerprint(self.params, tokenizer)
        self._files: list[str] = []
        if mode == "train":
            corpus = once_per_host(worker, self._read_corpus)
        else:
            corpus = self._read_corpus()
        self._set_corpus(corpus)
        self._check_enough()

    def with_lines(self, lines: Sequence[str]) -> Self:
        """Returns a layer over audio files, in infer."""
        return self.with_utterances(plain_list(lines, "input"))

    def with_utterances(self, utterances: Sequence[Utterance]) -> Self:
        """Returns a layer over utterances, which may be pieces of files, in infer."""
        layer = copy.copy(self)
        layer.mode, layer._randomness = "infer", None
        layer._set_corpus(layer._reader().read(utterances, []))
        return layer

    def dataset(self, position: Position = Position()) -> tf.data.Dataset:
        batches = SpeechBatches(
            self._corpus,
            self._features,
            self.spec,
            self._randomness,
            drops_bad=self.mode == "train" and self.params["bad_examples"] == "drop",
        )
        dataset = batches.dataset(lambda: self._examples(position))
        return dataset.prefetch(self.params["prefetch_buffer_size"])

    def batches(self, position: Position = Position()) -> Iterator[dict[str, Any]]:
        """Yields the batches of ``dataset`` as NumPy arrays."""
        yield from self.dataset(position).as_numpy_iterator()

    def restore(self, ids: Sequence[int]) -> str:
        """Returns a transcript: one space between words, none around them."""
        words = self._tokenizer.decode(ids).split(" ")
        return " ".join(filter(None, words))

    def surfaces(self, ids: Sequence[int]) -> list[str]:
        return self._tokenizer.spell(ids).surfaces

    def text_of(self, side: str, example_id: int) -> str:
        """Returns the name of the audio file, or the transcript in the alphabet."""
        if side == "source":
            return self._corpus.utterances[example_id].name
        assert self._corpus.text is not None  # infer has none
        return self._corpus.text.line(example_id)

    def features(
        self, samples: tf.Tensor, length: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the features of samples [B, N], without augmentation.

        See ``AudioFeatures``.
        """
        return self._features(samples, length)

    def audio_of(self, example_id: int) -> np.ndarray:
        """Returns the samples [N] float32 that features are made of."""
        return self._corpus.read(example_id, self._features.sample_freq)

    def in_graph(self, folder: Path) -> GraphAudioFrontEnd:
        tokenizer = self._tokenizer.in_graph(folder / "transcript")
        return GraphAudioFrontEnd(self._features, tokenizer)

    def front_end_files(self) -> dict[str, str]:
        return {"vocab_file": self.params["vocab_file"]}

    def _check_values(self) -> None:
        problems = self._problems_of_batches()
        names, least = self.params["dataset_files"], self.params["min_duration"]
        most = self.params["max_duration"]
        if not names and self.mode != "infer":
            problems.append(f"dataset_files: missing in {self.mode}")
        if self._reads_standard_input and self.mode in ("train", "eval"):
            problems.append(f"dataset_files: {self.mode} cannot read standard input")
        if least is not None and most is not None and least > most:
            problems.append(f"min_duration: {least} is above max_duration {most}")
        if problems:
            raise ConfigError([f"{type(self).__name__}/{text}" for text in problems])
        for name in ("soundfile", "soxr"):  # not only when the first file is read
            speech_package(name)

    @property
    def _reads_standard_input(self) -> bool:
        names = self.params["dataset_files"] or []
        return STANDARD_INPUT in ([names] if isinstance(names, str) else names)

    def _make_randomness(self) -> Randomness:
        params = self.params["augmentation"]
        augment = AudioAugmentation(params, self._features.sample_freq)
        return Randomness(self.params["seed"], augment, SpecAugment(params))

    def _warn_of_long_symbols(self) -> None:
        """Tells of an alphabet that is none: a line is split into characters."""
        first = 1 + max(self.spec.pad_id, self.spec.eos_id, self.spec.unk_id)
        long = [symbol for symbol in self.spec.symbols[first:] if len(symbol) > 1]
        if long and not self.params["bpe"] and self.worker.is_chief:
            _log.warning(
                "%s: %d symbols of several characters, such as %r, are never found in "
                "a transcript; a SentencePiece model needs bpe: True",
                self.params["vocab_file"],
                len(long),
                long[0],
            )

    def _reader(self) -> SpeechCorpusReader:
        return SpeechCorpusReader(
            self.params,
            self.mode,
            self._features,
            self._tokenizer,
            is_chief=self.worker.is_chief,
        )

    def _read_corpus(self) -> SpeechCorpus:
        names = self.params["dataset_files"]
        if names is None:
            return self._reader().read([], [])
        if self._reads_standard_input:
            self._check_one_reader()
        utterances, self._files = read_manifests(names, self.mode != "infer")
        return self._reader().read(utterances, self._files)

    def _set_corpus(self, corpus: SpeechCorpus) -> None:
        """Plans the batches of a corpus."""
        self._corpus = corpus
        multiple = max(self.params["pad_to"], 1)
        lengths = np.maximum(corpus.num_frames, 1)
        if self.mode == "train":
            lengths = _rounded_up(lengths)
        self._plan(lengths[:, np.newaxis], multiple)
        self.num_lines = len(corpus.utterances)
        self.blank_ids = corpus.blank if self.mode == "infer" else corpus.blank[:0]

    def _check_enough(self) -> None:
        """Refuses data without examples; infer may have nothing to read."""
        if self.mode != "infer" and self.num_examples == 0:
            raise DataError(
                f"{', '.join(self._files)}: no example is left of {self.num_lines:,} "
                "utterances"
            )
        if self.mode == "train":
            self._check_workers(self._files, "audio, transcripts or alphabets")

    def _examples(self, position: Position) -> Iterator[tuple[int, np.ndarray]]:
        """Yields the epoch and the examples' ids of batch after batch."""
        for epoch, examples in self._planned(position):
            yield epoch, self._corpus.examples[examples]


def _make_tokenizer(params: Mapping[str, Any]) -> Tokenizer:
    file = params["vocab_file"]
    if params["bpe"]:
        return SentencePieceTokenizer(file)
    return DelimitedTokenizer(file, delimiter="", special_tokens_already_in_vocab=False)


def _symbols(tokenizer: Tokenizer) -> tuple[str, ...]:
    """Returns the text of each id, with the space that stands before a word."""
    special = (tokenizer.pad_id, tokenizer.eos_id, tokenizer.bos_id)
    before = tokenizer.unk_id  # a text loses the space that it begins with
    return tuple(
        "" if token in special else tokenizer.spell([before, token]).surfaces[1]
        for token in range(tokenizer.vocab_size)
    )


def _fingerprint(params: Mapping[str, Any], tokenizer: Tokenizer) -> str:
    """Returns a hash of all that decides what features and ids are."""
    values = {key: to_plain(params[key]) for key in FEATURE_KEYS}
    content = json.dumps([tokenizer.fingerprint, values], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()


def _rounded_up(lengths: np.ndarray) -> np.ndarray:
    """Returns lengths of few different values, at most a twentieth above."""
    steps = np.ceil(np.log(lengths) / np.log(_ALIKE) - 1e-9)
    return np.ceil(_ALIKE**steps).astype(np.int64)

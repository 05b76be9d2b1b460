"""Batches of utterances: read and changed on the host, features inside the graph."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from oseq.contracts import Batch, DataSpec
from oseq.data.audio_augmentation import AudioAugmentation
from oseq.data.audio_features import AudioFeatures
from oseq.data.graph_mistakes import keeping_mistakes
from oseq.data.padding import pad_rows
from oseq.data.spec_augment import SpecAugment
from oseq.data.speech_corpus import SpeechCorpus
from oseq.data.text_files import DataError

_log = logging.getLogger(__name__)


class Randomness(NamedTuple):
    """What is random about training utterances.

    All of it follows from seed, epoch and the utterance's id.
    """

    seed: int
    augment: AudioAugmentation
    mask: SpecAugment


class SpeechBatches:
    """Makes batches of planned examples.

    Args:
      corpus: with transcripts, where batches are to have targets.
      features: of the samples.
      spec: special ids.
      randomness: None outside of training.
      drops_bad: utterances that cannot be read after all are left out of their batch,
        with a warning; where nothing is left of it, the next example that can be read
        takes its place, so that workers keep having equally many. False makes them an
        error.
    """

    def __init__(
        self,
        corpus: SpeechCorpus,
        features: AudioFeatures,
        spec: DataSpec,
        randomness: Randomness | None,
        drops_bad: bool,
    ):
        self._corpus = corpus
        self._features = features
        self._spec = spec
        self._randomness = randomness
        self._drops_bad = drops_bad

    def dataset(
        self, planned: Callable[[], Iterator[tuple[int, np.ndarray]]]
    ) -> tf.data.Dataset:
        """Returns batches.

        Args:
          planned: gives epoch and ids [B] int64 of batch after batch.
        """
        signature = tf.TensorSpec([], tf.int64), tf.TensorSpec([None], tf.int64)
        return (
            tf.data.Dataset.from_generator(planned, output_signature=signature)
            .map(self._read, tf.data.AUTOTUNE, deterministic=True)
            .map(self._to_batch, tf.data.AUTOTUNE, deterministic=True)
        )

    def _read(self, epoch: tf.Tensor, ids: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns the samples and transcripts of a batch, by name."""
        specs = {
            "id": tf.TensorSpec([None], tf.int64),
            "samples": tf.TensorSpec([None, None], tf.float32),
            "length": tf.TensorSpec([None], tf.int32),
            "seeds": tf.TensorSpec([None, 4], tf.int32),
            "target_ids": tf.TensorSpec([None, None], tf.int32),
            "target_length": tf.TensorSpec([None], tf.int32),
        }
        values = tf.numpy_function(
            keeping_mistakes(self._read_rows),
            [epoch, ids],
            [spec.dtype for spec in specs.values()],
        )
        return {
            name: tf.ensure_shape(value, spec.shape)
            for value, (name, spec) in zip(values, specs.items(), strict=True)
        }

    def _read_rows(self, epoch: int, ids: np.ndarray) -> tuple[np.ndarray, ...]:
        """Returns what ``_read`` does, as arrays; threads do so side by side."""
        read = self._readable(int(epoch), ids) or self._next(int(epoch), int(ids[0]))
        length = np.array([len(samples) for samples in read.values()], np.int32)
        padded = np.zeros((len(read), length.max()), np.float32)
        for row, samples in zip(padded, read.values(), strict=True):
            row[: len(samples)] = samples
        ids = np.array(list(read), np.int64)
        seeds = np.zeros((len(ids), 4), np.int32)
        if self._randomness is not None:
            seeds = np.stack([self._seeds(epoch, row)[1] for row in ids])
        return (ids, padded, length, seeds, *self._targets(ids))

    def _readable(self, epoch: int, ids: np.ndarray) -> dict[int, np.ndarray]:
        """Returns the samples of those utterances that can be read."""
        rows = {int(row): self._samples(epoch, int(row)) for row in ids}
        return {row: samples for row, samples in rows.items() if samples is not None}

    def _next(self, epoch: int, row: int) -> dict[int, np.ndarray]:
        """Returns the samples of the first example after ``row`` that can be read."""
        examples = self._corpus.examples
        first = np.searchsorted(examples, row) + 1
        for other in itertools.chain(examples[first:], examples[:first]):
            if read := self._readable(epoch, np.array([other])):
                return read
        raise DataError("no example is left that can be read")

    def _samples(self, epoch: int, row: int) -> np.ndarray | None:
        """Returns [N] float32; None for what is to be left out."""
        try:
            samples = self._corpus.read(row, self._features.sample_freq)
        except DataError as error:
            if not self._drops_bad:
                raise
            _log.warning("%s; it is left out", error)
            return None
        if self._randomness is not None:
            generator = np.random.default_rng(self._seeds(epoch, row)[0])
            samples = self._randomness.augment(samples, generator)
        return samples

    def _seeds(self, epoch: int, row: int) -> tuple[np.random.SeedSequence, np.ndarray]:
        """Returns an utterance's seed on the host and, [4] int32, in the graph."""
        assert self._randomness is not None
        sequence = np.random.SeedSequence([self._randomness.seed, epoch, row])
        host, graph = sequence.spawn(2)
        return host, graph.generate_state(4).astype(np.uint32).view(np.int32)

    def _targets(self, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self._corpus.text is None:
            return np.zeros((len(ids), 0), np.int32), np.zeros(len(ids), np.int32)
        spec = self._spec
        return pad_rows(self._corpus.text, ids, pad_id=spec.pad_id, eos_id=spec.eos_id)

    def _to_batch(self, read: dict[str, tf.Tensor]) -> Batch:
        samples, length, seeds = read["samples"], read["length"], read["seeds"]
        if self._randomness is None:
            features, length = self._features(samples, length)
        else:
            features, length = self._features(samples, length, seeds[:, :2])
            features = self._randomness.mask(features, length, seeds[:, 2:])
        features = tf.ensure_shape(features, [None, None, self._spec.num_features])
        batch: Batch = {
            "source": {"features": features, "length": length},
            "id": read["id"],
        }
        if self._corpus.text is not None:
            batch["target"] = {
                "ids": read["target_ids"],
                "length": read["target_length"],
            }
        return batch

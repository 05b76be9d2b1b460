"""A model of three weights, a data layer of a few numbers, a step: small and exact."""

from __future__ import annotations

import concurrent.futures
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import keras
import numpy as np
import tensorflow as tf

from oseq.contracts import DataSpec, LossOutput, Position, Scored
from oseq.data.data_layer import DataLayer
from oseq.data.word_alignment import AlignedText
from oseq.distributed.worker import SingleWorker
from oseq.layers.normalization import MaskedBatchNorm
from oseq.optimizers.loss_scalers import BackoffScaler, LossScaler, StaticLossScaler
from oseq.optimizers.mp_wrapper import MixedPrecisionOptimizerWrapper
from oseq.training.moving_average import MovingAverage
from oseq.training.trainer import Trainer

VOCABULARY = 8
BATCH = 2


class TinyModel(keras.layers.Layer):
    """An embedding, dropout and a dense layer; ``generate`` repeats the source.

    Three weights, and the state of one seed generator; with ``batch_norm`` four more
    weights, of two of which nobody trains.
    """

    best_metric = "exact"

    def __init__(self, policy="float32", vocabulary=VOCABULARY, batch_norm=False):
        super().__init__(name="tiny", dtype=policy, autocast=False)
        self.embedding = keras.layers.Embedding(
            vocabulary, 4, name="embedding", dtype=policy
        )
        self.dropout = keras.layers.Dropout(0.2, seed=3, name="dropout", dtype=policy)
        self.dense = keras.layers.Dense(
            vocabulary, name="dense", dtype=policy, kernel_initializer="he_normal"
        )
        self.norm = MaskedBatchNorm(1e-3, 0.9, name="norm") if batch_norm else None

    def call(self, batch, training=False):
        hidden = self.dropout(self.embedding(batch["source"]["ids"]), training=training)
        if self.norm is not None:
            valid = tf.sequence_mask(batch["source"]["length"], tf.shape(hidden)[1])
            hidden = self.norm(hidden, valid, training=training)
        logits = tf.cast(self.dense(hidden), tf.float32)
        alignment = tf.one_hot(
            tf.zeros_like(batch["source"]["ids"]), tf.shape(logits)[1]
        )
        return {"logits": logits, "alignment": alignment}

    def compute_loss(self, batch, training=False):
        logits = self(batch, training=training)["logits"]
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
            batch["target"]["ids"], logits
        )
        mask = tf.sequence_mask(
            batch["target"]["length"], tf.shape(losses)[1], tf.float32
        )
        total, weight = tf.reduce_sum(losses * mask), tf.reduce_sum(mask)
        return LossOutput(total, weight, {"nll": total, "num_tokens": weight})

    def generate(self, batch):
        ids, length = batch["source"]["ids"], batch["source"]["length"]
        second = tf.reverse_sequence(ids, length, seq_axis=1)
        return {
            "ids": tf.stack([ids, second], axis=1),
            "length": tf.stack([length, length], axis=1),
            "score": tf.stack([tf.cast(length, tf.float32)] * 2, axis=1),
        }

    def check_evaluation(self):
        pass

    def evaluate(self, results):
        equal = [result.hypotheses[0] == result.reference for result in results]
        return {"exact": float(np.mean(equal))}


class TinyDataLayer(DataLayer):
    """Sentences of 1 to 3 tokens, in an order that depends on the epoch."""

    def __init__(self, mode="train", worker=None, num_examples=7, spec=None):
        super().__init__({}, mode, worker or SingleWorker())
        self.num_examples = num_examples
        self.num_lines = num_examples
        self.blank_ids = np.array([], np.int64)
        self.spec = spec or DataSpec(VOCABULARY, VOCABULARY)
        self._place = slice(self.worker.rank, None, self.worker.size)
        self.fingerprint = ""
        self.order_fingerprint = f"{num_examples} by {BATCH}"
        if mode == "train":
            self.batches_per_epoch = -(-num_examples // (self.worker.size * BATCH))
        else:
            batches = range(0, num_examples, BATCH)
            self.batches_per_epoch = len(batches[self._place])

    def sentence(self, identity):
        return [1 + (identity + k) % (VOCABULARY - 1) for k in range(identity % 3 + 1)]

    def dataset(self, position=Position()):
        sequence = {
            "ids": tf.TensorSpec([None, None], tf.int32),
            "length": tf.TensorSpec([None], tf.int32),
        }
        signature = {"source": sequence, "id": tf.TensorSpec([None], tf.int64)}
        if self.mode != "infer":
            signature["target"] = sequence
        return tf.data.Dataset.from_generator(
            lambda: self._batches(position), output_signature=signature
        ).prefetch(2)

    def _batches(self, position):
        epoch, first = position.epoch, position.batch
        while True:
            ids = np.setdiff1d(np.arange(self.num_examples), self.blank_ids)
            if self.mode == "train":
                ids = ids[self._place]  # not of whole batches: all have as many
            # eval and infer too come in an order that is not the data's
            ids = np.random.default_rng(epoch).permutation(ids)
            batches = [ids[i : i + BATCH] for i in range(0, len(ids), BATCH)]
            if self.mode != "train":
                batches = batches[self._place]
            for chosen in batches[first:]:
                rows = [self.sentence(identity) for identity in chosen]
                longest = max(map(len, rows))
                ids = [row + [0] * (longest - len(row)) for row in rows]
                side = {"ids": ids, "length": [len(row) for row in rows]}
                batch = {"source": side, "id": chosen}
                yield batch if self.mode == "infer" else {**batch, "target": side}
            if self.mode != "train":
                return
            epoch, first = epoch + 1, 0

    def advance(self, position, num_batches):
        epochs, batch = divmod(position.batch + num_batches, self.batches_per_epoch)
        return Position(position.epoch + epochs, batch)

    def restore(self, ids):
        return " ".join(map(str, ids))

    def text_of(self, side, identity):
        return self.restore(self.sentence(identity))


class AlignedModel(TinyModel):
    """Repeats the source; every token attends to the one in its place."""

    spec = DataSpec(VOCABULARY, VOCABULARY)

    def score(self, batch):
        ids, size = batch["target"]["ids"], tf.shape(batch["source"]["ids"])[1]
        places = tf.zeros_like(ids) + tf.range(tf.shape(ids)[1])
        return Scored(tf.zeros(tf.shape(ids)), tf.one_hot(places, size))


class AlignedDataLayer(TinyDataLayer):
    """Says of each hypothesis of which line and ids it was made."""

    def align(self, identity, ids, attention):
        text = f"{identity}: {self.restore(ids)}"
        return AlignedText([], ids, attention[: len(ids), : len(ids)], text)


class TinyResult(NamedTuple):
    total: tf.Tensor
    weight: tf.Tensor
    num_tokens: tf.Tensor
    source_tokens: tf.Tensor
    num_padded: tf.Tensor
    num_impossible: tf.Tensor
    num_stopping: tf.Tensor
    seconds_waiting: tf.Tensor
    update: object


class TinyStep:
    """One update from one batch; overflows at the calls named.

    Attributes:
      seen: ids of the batches, in order.
      losses: mean losses, in order.
      num_stopping, num_impossible: of the results to come.
    """

    def __init__(self, model, optimizer, overflow_at=(), before=None):
        self.iter_size = 1
        self.seen, self.losses = [], []
        self.num_stopping = 0.0
        self.num_impossible = 0.0
        self._calls = 0
        self._model, self._optimizer = model, optimizer
        self._overflow_at = overflow_at
        self._before = before or (lambda call: None)

    def request_stop(self):
        self.num_stopping = 1.0

    def __call__(self, iterator):
        self._calls += 1
        self._before(self._calls)
        batch = next(iterator)
        self.seen.append(batch["id"].numpy().tolist())
        with tf.GradientTape() as tape:
            loss = self._model.compute_loss(batch, training=True)
            scaled = self._optimizer.loss_scale * (loss.total / loss.weight)
        values = [variable.value for variable in self._model.trainable_variables]
        gradients = [
            tf.cast(tf.convert_to_tensor(gradient), tf.float32)
            for gradient in tape.gradient(scaled, values)
        ]
        if self._calls in self._overflow_at:
            gradients[1] *= float("inf")
        self.losses.append(float(loss.total / loss.weight))
        length = tf.cast(tf.reduce_sum(batch["target"]["length"]), tf.float32)
        positions = tf.cast(tf.size(batch["target"]["ids"]), tf.float32)
        return TinyResult(
            loss.total,
            loss.weight,
            length,
            length,
            2 * (positions - length),
            tf.constant(self.num_impossible),
            tf.constant(self.num_stopping),
            tf.constant(0.0),
            self._optimizer.apply(gradients),
        )


def make_run(
    *,
    policy: str = "float32",
    last_step: int = 10,
    hooks=(),
    overflow_at=(),
    before=None,
    scaler: LossScaler | None = None,
    data_layer: TinyDataLayer | None = None,
    worker=None,
    vocabulary: int = VOCABULARY,
    ema_decay: float | None = None,
    batch_norm: bool = False,
) -> SimpleNamespace:
    """Returns a new run: ``model``, ``optimizer``, ``step`` and ``trainer``."""
    keras.utils.set_random_seed(5)
    worker = worker or SingleWorker()
    data_layer = data_layer or TinyDataLayer(worker=worker)
    model = TinyModel(policy, vocabulary, batch_norm)
    model(next(iter(data_layer.dataset())))
    optimizer = MixedPrecisionOptimizerWrapper(
        keras.optimizers.Adam(0.05), scaler or StaticLossScaler(1.0)
    )
    optimizer.build(model.trainable_variables)
    step = TinyStep(model, optimizer, overflow_at, before)
    average = ema_decay and MovingAverage(ema_decay, model, optimizer)
    trainer = Trainer(
        step,
        model,
        optimizer,
        data_layer,
        worker,
        last_step=last_step,
        hooks=hooks,
        moving_average=average,
    )
    return SimpleNamespace(
        model=model, optimizer=optimizer, step=step, trainer=trainer, average=average
    )


class _OneOfAll(SingleWorker):
    """One of several workers that run side by side as threads."""

    def __init__(self, rank, shares, barrier):
        self.rank, self.size = rank, len(shares)
        self._shares, self._barrier = shares, barrier

    def average(self, variables):
        values = [variable.numpy() for variable in variables]
        for variable, *of_workers in zip(
            variables, *self.gather_objects(values), strict=True
        ):
            variable.assign(np.mean(of_workers, axis=0))

    def gather_objects(self, value):
        self._shares[self.rank] = value
        self._barrier.wait()
        gathered = list(self._shares)
        self._barrier.wait()
        return gathered


def on_workers(size, action):
    """Returns what ``action(worker)`` returns on each of ``size`` workers."""
    shares, barrier = [None] * size, threading.Barrier(size)

    def run(rank):
        try:
            return action(_OneOfAll(rank, shares, barrier))
        except BaseException:
            barrier.abort()  # nobody waits for a worker that has failed
            raise

    with concurrent.futures.ThreadPoolExecutor(size) as pool:
        return list(pool.map(run, range(size)))


def all_values(run: SimpleNamespace) -> dict[str, np.ndarray]:
    """Returns every variable of a run by name."""
    return run.trainer._state.capture()


def saved_run(folder: Path, **arguments) -> tuple[SimpleNamespace, Path]:
    """Returns a run of four steps and its checkpoint."""
    run = make_run(**{"last_step": 4, **arguments})
    run.trainer.run()
    return run, run.trainer.save(folder)


def backoff() -> BackoffScaler:
    return BackoffScaler(scale_min=1.0, scale_max=4.0)

"""Curves, sample outputs and pictures for TensorBoard."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from oseq.config.experiment import SUMMARIES
from oseq.config.params import ConfigError
from oseq.contracts import DecoderOutput, Source
from oseq.data.data_layer import DataLayer
from oseq.training.evaluator import Evaluation
from oseq.training.hooks.hook import Hook
from oseq.training.pictures import (
    attention_picture,
    likely_classes,
    speech_picture,
)
from oseq.training.totals import Totals
from oseq.training.trainer import Trainer

_NUM_SAMPLES = 5


class TensorBoardHook(Hook):
    """Writes event files into ``logdir/tensorboard``.

    Loss, tokens/s, steps/s and the share of padding are always written, as are the
    metrics and a few outputs of every evaluation.

    Args:
      logdir: of the run.
      every_steps: period of the curves; None for those of evaluations alone.
      summaries: which further curves, out of ``SUMMARIES``.
      data_layer: in eval mode; where given, each evaluation draws the attention of
        its first example, or its features and what CTC makes of them, if there are
        any.
    """

    def __init__(
        self,
        logdir: Path,
        every_steps: int | None,
        summaries: Sequence[str] = SUMMARIES[:3],
        data_layer: DataLayer | None = None,
    ):
        unknown = [name for name in summaries if name not in SUMMARIES]
        if unknown:
            raise ConfigError(
                f"summaries: unknown {', '.join(map(repr, unknown))}; choose from "
                + ", ".join(SUMMARIES)
            )
        self.every_steps = every_steps
        self._folder = Path(logdir) / "tensorboard"
        self._summaries = frozenset(summaries)
        self._data_layer = data_layer
        self._written = Totals()

    def begin(self, trainer: Trainer) -> None:
        self._writer = tf.summary.create_file_writer(str(self._folder))

    def after_step(self, trainer: Trainer, result: Any) -> None:
        since = trainer.totals - self._written
        self._written = trainer.totals
        update = result.update
        scalars = {
            "train/loss": since.mean_loss,
            "speed/target_tokens_per_second": since.per_second(since.num_tokens),
            "speed/steps_per_second": since.per_second(since.updates),
            "train/padding_share": since.padding_share,
        }
        seconds_per_position = trainer.data_layer.seconds_per_position
        if seconds_per_position is not None:
            seconds_of_speech = since.source_tokens * seconds_per_position
            scalars["speed/speech_seconds_per_second"] = since.per_second(
                seconds_of_speech
            )
        if trainer.totals.num_impossible:
            scalars["train/impossible_targets"] = since.num_impossible
        if trainer.worker.size > 1:
            scalars["speed/waiting_share"] = since.waiting_share
        if "learning_rate" in self._summaries:
            scalars["train/learning_rate"] = update.learning_rate
        if "global_gradient_norm" in self._summaries:
            scalars["train/global_gradient_norm"] = update.gradient_norm
        if "loss_scale" in self._summaries:
            scalars["train/loss_scale"] = update.loss_scale
        if "variable_norm" in self._summaries:
            for path, master in trainer.optimizer.masters.items():
                scalars[f"variable_norm/{path}"] = tf.norm(tf.convert_to_tensor(master))
        with self._writer.as_default(step=trainer.step):
            for name, value in scalars.items():
                tf.summary.scalar(name, value)

    def after_evaluation(self, trainer: Trainer, evaluation: Evaluation) -> None:
        with self._writer.as_default(step=trainer.step):
            for name, value in evaluation.metrics.items():
                tf.summary.scalar(f"eval/{name}", value)
            samples = [
                f"{result.source}\n\n{result.reference}\n\n**{result.hypotheses[0]}**"
                for result in evaluation.results[:_NUM_SAMPLES]
            ]
            tf.summary.text("eval/samples", samples)
            self._draw(trainer)
        self._writer.flush()

    def end(self, trainer: Trainer) -> None:
        # Not closed: the end of another hook may bring one more evaluation.
        self._writer.flush()

    def _draw(self, trainer: Trainer) -> None:
        """Draws what the model makes of the first example that the data layer gives."""
        if self._data_layer is None:
            return
        batch = next(iter(self._data_layer.dataset()))
        batch = tf.nest.map_structure(lambda values: values[:1], batch)
        outputs = trainer.model(batch, training=False)
        if "alignment" in outputs:
            target_ids = batch["target"]["ids"][0, : int(batch["target"]["length"][0])]
            labels = [self._data_layer.restore([int(value)]) for value in target_ids]
            weights = outputs["alignment"][0, : len(labels)].numpy()
            # What lies beyond the source gets exactly nothing.
            num_columns = 1 + int(np.flatnonzero(weights.any(axis=0)).max(initial=0))
            picture = attention_picture(weights[:, :num_columns], labels)
            tf.summary.image("eval/attention", picture[tf.newaxis])
        seconds = self._data_layer.seconds_per_position
        if seconds is not None and batch["source"]["length"][0] > 0:
            self._draw_speech(batch["source"], seconds, outputs)

    def _draw_speech(
        self, source: Source, seconds_per_frame: float, outputs: DecoderOutput
    ) -> None:
        assert self._data_layer is not None
        length = int(source["length"][0])
        features = source["features"][0, :length].numpy()
        seconds = length * seconds_per_frame
        frames = outputs.get("ctc", outputs)
        posteriors, labels = None, []
        if "length" in frames:
            logits = frames["logits"][0, : int(frames["length"][0])]
            posteriors = tf.nn.softmax(logits).numpy()
            classes = likely_classes(posteriors, self._data_layer.spec.pad_id)
            posteriors = posteriors[:, classes]
            labels = [self._label_of(int(each)) for each in classes]
        picture = speech_picture(features, seconds, posteriors, labels)
        tf.summary.image("eval/speech", picture[tf.newaxis])

    def _label_of(self, symbol: int) -> str:
        """Returns what to write beside a class of CTC."""
        assert self._data_layer is not None
        if symbol == self._data_layer.spec.pad_id:
            return "blank"
        return self._data_layer.surfaces([symbol])[0].replace(" ", "\u2423")

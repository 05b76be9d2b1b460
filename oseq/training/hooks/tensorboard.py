"""Curves, sample translations and attention pictures for TensorBoard."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf

from oseq.config.experiment import SUMMARIES
from oseq.config.params import ConfigError
from oseq.data.data_layer import DataLayer
from oseq.training.evaluator import Evaluation
from oseq.training.hooks.hook import Hook
from oseq.training.totals import Totals
from oseq.training.trainer import Trainer

_NUM_SAMPLES = 5


class TensorBoardHook(Hook):
    """Writes event files into ``logdir/tensorboard``.

    Loss, tokens/s, steps/s and the share of padding are always written, as are the
    metrics and a few translations of every evaluation.

    Args:
      logdir: of the run.
      every_steps: period of the curves; None for those of evaluations alone.
      summaries: which further curves, out of ``SUMMARIES``.
      data_layer: in eval mode; where given, and where the decoder returns an
        alignment, each evaluation draws the one of the first example.
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
            self._draw_attention(trainer)
        self._writer.flush()

    def end(self, trainer: Trainer) -> None:
        # Not closed: the end of another hook may bring one more evaluation.
        self._writer.flush()

    def _draw_attention(self, trainer: Trainer) -> None:
        if self._data_layer is None:
            return
        batch = next(iter(self._data_layer.dataset()))
        outputs = trainer.model(batch, training=False)
        if "alignment" not in outputs:
            return
        source_length = int(batch["source"]["length"][0])
        target_ids = batch["target"]["ids"][0, : int(batch["target"]["length"][0])]
        labels = [self._data_layer.restore([int(value)]) for value in target_ids]
        alignment = outputs["alignment"][0, : len(labels), :source_length]
        picture = attention_picture(alignment.numpy(), labels)
        tf.summary.image("eval/attention", picture[tf.newaxis])


def attention_picture(alignment: Any, labels: Sequence[str]) -> tf.Tensor:
    """Returns an alignment as a picture, [height, width, 3] uint8.

    Args:
      alignment: [T, S'] float32.
      labels: T texts, one for each row.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    num_rows, num_columns = alignment.shape
    figure = Figure(figsize=(2 + 0.25 * num_columns, 1 + 0.25 * num_rows), dpi=80)
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.imshow(alignment, vmin=0.0, vmax=1.0, cmap="Greys", aspect="auto")
    axes.set_yticks(
        range(num_rows), labels=[text.replace("$", r"\$") for text in labels]
    )
    axes.set_xlabel("source position")
    figure.tight_layout()
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return tf.io.decode_png(buffer.getvalue(), channels=3)

"""Pictures of what a model attends to and hears; drawn by matplotlib."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import tensorflow as tf

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_INCHES = 24.0  # of a side: at 80 dots per inch no screen shows more
_LEAST_PROBABILITY = 0.05  # of a symbol that is worth a row


def attention_picture(alignment: np.ndarray, labels: Sequence[str]) -> tf.Tensor:
    """Returns an alignment as a picture, [height, width, 3] uint8.

    Args:
      alignment: [T, S'] float32.
      labels: T texts, one for each row.
    """
    num_rows, num_columns = alignment.shape
    figure = _figure(2 + 0.25 * num_columns, 1 + 0.25 * num_rows)
    axes = figure.add_subplot()
    axes.imshow(alignment, vmin=0.0, vmax=1.0, cmap="Greys", aspect="auto")
    _label_rows(axes, labels)
    axes.set_xlabel("source position")
    return _drawn(figure)


def speech_picture(
    features: np.ndarray,
    seconds: float,
    posteriors: np.ndarray | None = None,
    labels: Sequence[str] = (),
) -> tf.Tensor:
    """Returns features and CTC's posteriors over the same time, [height, width, 3].

    Args:
      features: [S, F] float32.
      seconds: that they last.
      posteriors: [S', rows] float32, the probabilities of each frame.
      labels: texts, one for each row.
    """
    heights = [3.0] if posteriors is None else [3.0, 0.25 * len(labels) + 0.5]
    figure = _figure(3 + 3 * seconds, 1 + sum(heights))
    grid = figure.add_gridspec(len(heights), height_ratios=heights)
    axes = figure.add_subplot(grid[0])
    # Low frequencies below; the edges of the pictures are those of time.
    edges = (0.0, seconds, 0.0, float(features.shape[1]))
    axes.imshow(features.T, origin="lower", aspect="auto", extent=edges)
    axes.set_ylabel("feature")
    if posteriors is not None:
        axes = figure.add_subplot(grid[1])
        edges = (0.0, seconds, len(labels) - 0.5, -0.5)
        axes.imshow(
            posteriors.T, vmin=0.0, vmax=1.0, cmap="Greys", aspect="auto", extent=edges
        )
        _label_rows(axes, labels)
    axes.set_xlabel("seconds")
    return _drawn(figure)


def likely_classes(posteriors: np.ndarray, blank: int) -> np.ndarray:
    """Returns [rows] int64, classes that some frame finds likely, and the blank.

    Args:
      posteriors: [S', V] float32; S' is at least 1.
      blank: a picture has at least this row.
    """
    is_shown = posteriors.max(axis=0) >= _LEAST_PROBABILITY
    is_shown[blank] = True
    return np.flatnonzero(is_shown)


def _figure(width: float, height: float) -> Figure:
    """Returns an empty figure of a size in inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    size = (min(width, _MOST_INCHES), min(height, _MOST_INCHES))
    figure = Figure(figsize=size, dpi=80)
    FigureCanvasAgg(figure)
    return figure


def _label_rows(axes: Axes, labels: Sequence[str]) -> None:
    """Writes a text beside each row; a dollar sign would begin a formula."""
    texts = [text.replace("$", r"\$") for text in labels]
    axes.set_yticks(range(len(labels)), labels=texts)


def _drawn(figure: Figure) -> tf.Tensor:
    figure.tight_layout()
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return tf.io.decode_png(buffer.getvalue(), channels=3)

"""The base of layers that are made of layers."""

from __future__ import annotations

from typing import Any

import keras


class Composite(keras.layers.Layer):
    """A layer whose weights are all in its sublayers, which build themselves.

    Without a ``build`` of its own Keras would trace ``call`` once more, symbolically,
    at every level of the nesting, only to find that out: most of a model's start-up.
    """

    def build(self, *shapes: Any) -> None:
        """Has nothing to make."""

"""Recurrent layers whose next step depends on what the last one attended to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from oseq.layers.composite import Composite
from oseq.layers.dropout import Dropout
from oseq.layers.linear import Linear, map_rows
from oseq.layers.recurrent import RecurrentLayer
from oseq.layers.recurrent_attention import Memory, RecurrentAttention
from oseq.layers.recurrent_cudnn import State
from oseq.layers.step_loop import (
    Factor,
    Product,
    multiply,
    product_with,
    run_steps,
)


class LoopCarry(NamedTuple):
    """What one position hands to the next; leaves [N, ...]."""

    states: tuple[State, ...]  # of the layers
    fed: tf.Tensor  # [N, F], what was attended to
    attention: Any  # the attention's state


class LoopOutput(NamedTuple):
    """What positions are made into. Q is T of a whole target, and K of one step."""

    outputs: tf.Tensor  # of the topmost layer: [B, T, H], or [N, H]
    fed: tf.Tensor  # [B, T, F], or [N, F]
    weights: tf.Tensor  # [B, Q, S] float32


class AttentionLoop(Composite):
    """Recurrent layers, then attention, which is fed to the next position's first.

    What is fed is the context or, with an ``attention_map``, the attentional vector
    ``tanh(map([outputs, context]))`` ("Effective Approaches to Attention-based Neural
    Machine Translation", equation 5 and section 3.3).

    Args:
      layers: from the bottom.
      attention: its queries are the topmost layer's outputs.
      attention_map: without bias; None feeds the context.
      skip: add the input of each layer but the first to its output.
      input_rate, output_rate: of dropout before and after each layer, with new masks
        for every position.
    """

    def __init__(
        self,
        layers: Sequence[RecurrentLayer],
        attention: RecurrentAttention,
        attention_map: Linear | None,
        *,
        skip: bool,
        input_rate: float,
        output_rate: float,
        name: str,
        dtype: str,
    ):
        super().__init__(name=name, dtype=dtype, autocast=False)
        self.layers = list(layers)
        self.attention = attention
        self.attention_map = attention_map
        self.skip = skip
        rates = {"token": input_rate, "fed": input_rate}
        for i in range(len(self.layers)):
            if i > 0:
                rates[f"input_{i}"] = input_rate
            rates[f"output_{i}"] = output_rate
        self.dropouts = {
            place: Dropout(rate, name=f"{place}_dropout", dtype=dtype)
            for place, rate in rates.items()
        }

    def build(self, token_size: int, source_size: int, value_size: int) -> None:
        """Makes the weights; not called by Keras, which does not know the sizes."""
        num_units = self.layers[0].num_units
        self.fed_size = value_size
        if self.attention_map is not None:
            self.fed_size = self.attention_map.units
            self.attention_map.build((None, num_units + value_size))
        self.layers[0].build((None, token_size + self.fed_size))
        for layer in self.layers[1:]:
            layer.build((None, num_units))
        self.attention.build((None, num_units), (None, source_size))
        for dropout in self.dropouts.values():
            dropout.build(None)

    def call(
        self, vectors: tf.Tensor, memory: Memory, training: bool = False
    ) -> LoopOutput:
        """Runs over a whole target.

        Args:
          vectors: [B, T, E], of the tokens before each position.
          memory: the attention's.
        """
        vectors = self.dropouts["token"](vectors, training=training)
        inputs = {
            "totals": self._token_products(tf.transpose(vectors, [1, 0, 2])),
            "masks": self._masks(vectors, training),
        }
        constants = self.attention.constants(memory)
        visible = memory["visible"]

        def step(product, inputs, carry):
            output, carry = self._advance(product, constants, visible, carry, **inputs)
            return output._replace(weights=tf.squeeze(output.weights, 1)), carry

        output = run_steps(
            step,
            inputs,
            self.zero_carry(memory),
            self._factors(memory),
            LoopOutput(
                tf.TensorSpec([None, self.layers[-1].num_units], self.compute_dtype),
                tf.TensorSpec([None, self.fed_size], self.compute_dtype),
                tf.TensorSpec([None, None], tf.float32),
            ),
        )
        return LoopOutput(*(tf.transpose(each, [1, 0, 2]) for each in output))

    def zero_carry(self, memory: Memory) -> LoopCarry:
        """Returns what goes before the first position, for the memory's sentences."""
        num_sentences = tf.shape(memory["visible"])[0]
        return LoopCarry(
            tuple(layer.zero_state(num_sentences) for layer in self.layers),
            tf.zeros([num_sentences, self.fed_size], self.compute_dtype),
            self.attention.zero_state(num_sentences, memory),
        )

    def step(
        self, vectors: tf.Tensor, memory: Memory, carry: LoopCarry
    ) -> tuple[LoopOutput, LoopCarry]:
        """One position of ``call``, for vectors [N, E]."""
        return self._advance(
            product_with(self._factors(memory)),
            self.attention.constants(memory),
            memory["visible"],
            carry,
            self._token_products(vectors),
            {},
        )

    def _advance(
        self,
        product: Product,
        constants: Any,
        visible: tf.Tensor,
        carry: LoopCarry,
        totals: tf.Tensor,
        masks: Mapping[str, tf.Tensor],
    ) -> tuple[LoopOutput, LoopCarry]:
        """Makes one position.

        Args:
          product: with ``_factors``.
          constants, visible: see ``RecurrentAttention.attend``.
          carry: of the position before.
          totals: [N, G], the token's part of what goes into the first layer's gates.
          masks: see ``_masks``.
        """
        fed = self._dropped(carry.fed, "fed", masks)
        totals += product("fed", fed)
        states = []
        outputs = None
        for i, (layer, state) in enumerate(zip(self.layers, carry.states, strict=True)):
            inputs = outputs
            if i > 0:
                inputs = self._dropped(inputs, f"input_{i}", masks)
                totals = product(f"kernel_{i}", inputs)
            recurrent = product(f"recurrent_{i}", layer.output_of(state))
            outputs, state = layer.advance(totals, recurrent, state)
            if i > 0 and self.skip:
                outputs += inputs
            outputs = self._dropped(outputs, f"output_{i}", masks)
            states.append(state)
        context, weights, attention = self.attention.attend(
            outputs, product, constants, visible, carry.attention
        )
        fed = context
        if self.attention_map is not None:
            both = tf.concat([outputs, context], axis=-1)
            fed = tf.tanh(product("attention_map", both))
        carry = LoopCarry(tuple(states), fed, attention)
        return LoopOutput(outputs, fed, weights), carry

    def _token_products(self, vectors: tf.Tensor) -> tf.Tensor:
        """Args: vectors: [..., E]. Returns: [..., G], with the first layer's bias."""
        kernel, *bias = self.layers[0].input_factor()
        factor = kernel[: vectors.shape[-1]], *bias
        return map_rows(lambda rows: multiply(rows, factor), vectors)

    def _factors(self, memory: Memory) -> dict[str, Factor]:
        """Returns what ``_advance`` multiplies with, by name."""
        first, *others = self.layers
        factors = {
            "fed": (first.input_factor()[0][-self.fed_size :],),
            **{
                f"kernel_{i}": layer.input_factor()
                for i, layer in enumerate(others, start=1)
            },
            **{
                f"recurrent_{i}": layer.recurrent_factor()
                for i, layer in enumerate(self.layers)
            },
            **self.attention.factors(memory),
        }
        if self.attention_map is not None:
            kernel = tf.convert_to_tensor(self.attention_map.kernel)
            factors["attention_map"] = (kernel,)
        return factors

    def _masks(self, vectors: tf.Tensor, training: bool) -> dict[str, tf.Tensor]:
        """Returns what dropout keeps inside of the loop: [T, B, ...] bool by place.

        Args:
          vectors: [B, T, E], of the tokens.
        """
        masks = {}
        for place, dropout in self.dropouts.items():
            if training and dropout.rate and place != "token":
                size = self.fed_size if place == "fed" else self.layers[0].num_units
                shape = [tf.shape(vectors)[1], tf.shape(vectors)[0], size]
                ones = tf.ones(shape, self.compute_dtype)
                masks[place] = dropout(ones, training=True) > 0
        return masks

    def _dropped(
        self, inputs: tf.Tensor, place: str, masks: Mapping[str, tf.Tensor]
    ) -> tf.Tensor:
        if place not in masks:
            return inputs
        scale = tf.cast(1.0 / (1.0 - self.dropouts[place].rate), inputs.dtype)
        return tf.where(masks[place], inputs * scale, tf.zeros([], inputs.dtype))

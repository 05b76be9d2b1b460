"""How recurrent layers and attention to the source are wired to a decoder."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from oseq.config.params import ConfigError
from oseq.decoders.attention_loop import AttentionLoop
from oseq.layers.composite import Composite
from oseq.layers.dropout import Dropout
from oseq.layers.recurrent import RecurrentLayer
from oseq.layers.recurrent_attention import Memory


class AttentionStack(Composite):
    """A decoder without its tables.

    Attributes:
      loop: what has to wait for the attention of the position before.
      output_size: of the vectors that logits are made of.
    """

    loop: AttentionLoop
    output_size: int

    def build(self, token_size: int, source_size: int, value_size: int) -> None:
        """Makes the weights; not called by Keras, which does not know the sizes.

        Args:
          token_size: E, of token vectors.
          source_size: of the encoder's outputs.
          value_size: of its values.
        """
        self.loop.build(token_size, source_size, value_size)

    @abc.abstractmethod
    def call(
        self, vectors: tf.Tensor, memory: Memory, training: bool = False
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns outputs [B, T, output_size], and alignment [B, T, S] float32.

        Args:
          vectors: [B, T, E], of the tokens before each position.
          memory: the attention's.
        """

    @abc.abstractmethod
    def zero_carry(self, memory: Memory) -> Any:
        """Returns what goes before the first position; leaves [B, ...]."""

    @abc.abstractmethod
    def step(
        self, vectors: tf.Tensor, memory: Memory, carry: Any
    ) -> tuple[tf.Tensor, tf.Tensor, Any]:
        """One position of ``call``, for K beams of each sentence.

        Args:
          vectors: [N, E].
          memory: the attention's.
          carry: of the position before; leaves [N, ...].

        Returns:
          outputs [N, output_size], alignment [B, K, S] float32, and the new carry.
        """


class InputFeedingStack(AttentionStack):
    """All layers, then attention: its result is the output, and fed to the next step.

    "Effective Approaches to Attention-based Neural Machine Translation", section 3.3.

    Args:
      loop: of all layers, with an ``attention_map``.
    """

    def __init__(self, loop: AttentionLoop, *, name: str, dtype: str):
        super().__init__(name=name, dtype=dtype, autocast=False)
        assert loop.attention_map is not None
        self.loop = loop
        self.output_size = loop.attention_map.units

    def call(
        self, vectors: tf.Tensor, memory: Memory, training: bool = False
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """See the base."""
        output = self.loop(vectors, memory, training=training)
        return output.fed, output.weights

    def zero_carry(self, memory: Memory) -> Any:
        """See the base."""
        return self.loop.zero_carry(memory)

    def step(
        self, vectors: tf.Tensor, memory: Memory, carry: Any
    ) -> tuple[tf.Tensor, tf.Tensor, Any]:
        """See the base."""
        output, carry = self.loop.step(vectors, memory, carry)
        return output.fed, output.weights, carry


class GNMTStack(AttentionStack):
    """Attention of the bottom layer alone, whose context all other layers read.

    "Google's Neural Machine Translation System", section 3, and its variants in the
    TensorFlow NMT tutorial. Only the bottom layer waits for itself: the others run
    over whole targets, one after the other.

    Args:
      loop: of the bottom layer.
      upper: the other layers.
      new_context: they read the context that the bottom layer's output was answered
        with, as in ``gnmt_v2``; False: the one before, as in ``gnmt``.
      skip: from the third layer on add what came from below to the output (section
        3.1). To outputs of another size their first inputs are added, for what came
        from below stands before the context there.
      input_rate, output_rate: of dropout before and after each layer.
    """

    def __init__(
        self,
        loop: AttentionLoop,
        upper: Sequence[RecurrentLayer],
        *,
        new_context: bool,
        skip: bool,
        input_rate: float,
        output_rate: float,
        name: str,
        dtype: str,
    ):
        super().__init__(name=name, dtype=dtype, autocast=False)
        self.loop = loop
        self.new_context = new_context
        self.output_size = [*loop.layers, *upper][-1].num_units
        self.upper = [
            _UpperLayer(
                layer,
                skip and i > 1,
                input_rate,
                output_rate,
                name=f"upper_{i}",
                dtype=dtype,
            )
            for i, layer in enumerate(upper, start=1)
        ]

    def build(self, token_size: int, source_size: int, value_size: int) -> None:
        """See the base."""
        super().build(token_size, source_size, value_size)
        below_size = self.loop.layers[0].num_units
        for layer in self.upper:
            layer.build(below_size, value_size)
            below_size = layer.cell.num_units

    def call(
        self, vectors: tf.Tensor, memory: Memory, training: bool = False
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """See the base."""
        outputs, context, weights = self.loop(vectors, memory, training=training)
        if not self.new_context:
            context = tf.pad(context[:, :-1], [[0, 0], [1, 0], [0, 0]])
        for layer in self.upper:
            outputs = layer(outputs, context, training=training)
        return outputs, weights

    def zero_carry(self, memory: Memory) -> Any:
        """See the base."""
        num_sentences = tf.shape(memory["visible"])[0]
        states = [layer.cell.zero_state(num_sentences) for layer in self.upper]
        return {"loop": self.loop.zero_carry(memory), "upper": states}

    def step(
        self, vectors: tf.Tensor, memory: Memory, carry: Any
    ) -> tuple[tf.Tensor, tf.Tensor, Any]:
        """See the base."""
        output, loop_carry = self.loop.step(vectors, memory, carry["loop"])
        outputs = output.outputs
        context = output.fed if self.new_context else carry["loop"].fed
        states = []
        for layer, state in zip(self.upper, carry["upper"], strict=True):
            outputs, state = layer.step(outputs, context, state)
            states.append(state)
        return outputs, output.weights, {"loop": loop_carry, "upper": states}


class _UpperLayer(Composite):
    """A layer that reads what the one below puts out, and the context."""

    def __init__(
        self,
        cell: RecurrentLayer,
        skip: bool,
        input_rate: float,
        output_rate: float,
        *,
        name: str,
        dtype: str,
    ):
        super().__init__(name=name, dtype=dtype, autocast=False)
        self.cell = cell
        self.skip = skip
        self.input_dropout = Dropout(input_rate, name="input_dropout", dtype=dtype)
        self.output_dropout = Dropout(output_rate, name="output_dropout", dtype=dtype)

    def build(self, below_size: int, value_size: int) -> None:
        """Makes the weights; not called by Keras, which does not know the sizes."""
        size = below_size + value_size
        if self.skip and self.cell.num_units > size:
            raise ConfigError(
                f"decoder_use_skip_connections: {size} inputs of the topmost layer "
                f"cannot be added to its {self.cell.num_units} outputs; set it or "
                "tie_embeddings to False, or tgt_emb_size to num_units"
            )
        self.cell.build((None, size))
        self.input_dropout.build(None)
        self.output_dropout.build(None)

    def call(
        self, below: tf.Tensor, context: tf.Tensor, training: bool = False
    ) -> tf.Tensor:
        """Args: below: [B, T, H]; context: [B, T, H']. Returns: [B, T, H]."""
        inputs = tf.concat([below, context], axis=-1)
        outputs, _ = self.cell(self.input_dropout(inputs, training=training))
        outputs = self.output_dropout(outputs, training=training)
        return self._with_residual(outputs, inputs)

    def step(self, below: tf.Tensor, context: tf.Tensor, state: Any):
        """One position of ``call``: [N, ...]. Returns: [N, H], and the new state."""
        inputs = tf.concat([below, context], axis=-1)
        outputs, state = self.cell.step(inputs, state)
        return self._with_residual(outputs, inputs), state

    def _with_residual(self, outputs: tf.Tensor, inputs: tf.Tensor) -> tf.Tensor:
        if not self.skip:
            return outputs
        return outputs + inputs[..., : self.cell.num_units]

"""Multi-head attention ("Attention Is All You Need", section 3.2)."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from oseq.layers.composite import Composite
from oseq.layers.dropout import Dropout
from oseq.layers.linear import Linear

# In FP32 only: in float16 it would be -inf (K9). Finite, so that a row without any
# visible position is uniform, not NaN.
_HIDDEN = -1e9


def dot_product_weights(
    query: tf.Tensor,
    key: tf.Tensor,
    mask: tf.Tensor | None,
    position_scores: tf.Tensor | None = None,
) -> tf.Tensor:
    """Returns how much each query attends to each key: [..., T, S] float32.

    Args:
      query: [..., T, D].
      key: [..., S, D].
      mask: None, or broadcastable to [..., T, S] bool.
      position_scores: None, or [..., T, S], added to the products.
    """
    scores = tf.matmul(query, key, transpose_b=True)
    if position_scores is not None:
        scores = tf.cast(scores, tf.float32) + tf.cast(position_scores, tf.float32)
    return masked_softmax(scores, mask)


def masked_softmax(scores: tf.Tensor, mask: tf.Tensor | None) -> tf.Tensor:
    """Returns the softmax of ``scores [..., S]`` in float32; hidden ones have none."""
    scores = tf.cast(scores, tf.float32)
    if mask is not None:
        scores = tf.where(mask, scores, _HIDDEN)
    return tf.nn.softmax(scores)


class KeyValue(NamedTuple):
    """Keys and values: [B, A, S, D], or [B, S, D] where there is but one head."""

    key: tf.Tensor
    value: tf.Tensor


class MultiHeadAttention(Composite):
    """Common part: attention of split heads, and the output map.

    Args:
      hidden_size: H, divisible by ``num_heads``.
      num_heads: A.
      dropout: rate on the attention weights.
      initializer, regularizer: as in ``Linear``.
    """

    def __init__(
        self,
        hidden_size: int,
        num_heads: int,
        dropout: float,
        *,
        initializer=None,
        regularizer=None,
        name: str,
        dtype: str,
    ):
        super().__init__(name=name, dtype=dtype)
        if hidden_size % num_heads:
            raise ValueError(
                f"hidden_size {hidden_size} is not divisible by num_heads {num_heads}"
            )
        self.hidden_size = hidden_size
        self.num_heads = num_heads
        self.head_size = hidden_size // num_heads
        self.linear_options = dict(
            initializer=initializer, regularizer=regularizer, dtype=dtype
        )
        self.dropout = Dropout(dropout, name="dropout", dtype=dtype)
        self.output_map = Linear(hidden_size, name="output", **self.linear_options)

    def split_heads(self, inputs: tf.Tensor, num_parts: int) -> list[tf.Tensor]:
        """Args: inputs: [B, T, parts * H]. Returns: parts of [B, A, T, D]."""
        shape = tf.shape(inputs)
        parts = tf.reshape(
            inputs, [shape[0], shape[1], num_parts, self.num_heads, self.head_size]
        )
        return tf.unstack(tf.transpose(parts, [2, 0, 3, 1, 4]))

    def attend(
        self,
        query: tf.Tensor,
        memory: KeyValue,
        mask: tf.Tensor | None,
        training: bool,
        position_scores: tf.Tensor | None = None,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Scaled dot-product attention and the output map; softmax in FP32.

        Args:
          query: [B, A, T, D].
          memory: keys and values, [B, A, S, D] each.
          mask: None, or broadcastable to [B, A, T, S] bool.
          position_scores: None, or [B, A, T, S], added to the scaled products.

        Returns:
          outputs [B, T, H], and attention weights [B, A, T, S] float32.
        """
        query = query * tf.cast(self.head_size**-0.5, query.dtype)
        weights = dot_product_weights(
            query, memory.key, mask, position_scores
        )  # [B, A, T, S]
        dropped = self.dropout(tf.cast(weights, query.dtype), training=training)
        context = tf.matmul(dropped, memory.value)  # [B, A, T, D]
        context = tf.transpose(context, [0, 2, 1, 3])  # [B, T, A, D]
        shape = tf.shape(context)
        context = tf.reshape(context, [shape[0], shape[1], self.hidden_size])
        return self.output_map(context), weights


class SelfAttention(MultiHeadAttention):
    """Attention of a sequence to itself, in one pass or step by step."""

    writes_in_place = True  # False for runtimes that cannot, such as TFLite

    def __init__(self, hidden_size: int, *args, **kwargs):
        super().__init__(hidden_size, *args, **kwargs)
        self.query_key_value = Linear(
            3 * hidden_size, name="query_key_value", **self.linear_options
        )

    def call(
        self, inputs: tf.Tensor, mask: tf.Tensor, training: bool = False
    ) -> tf.Tensor:
        """Args: inputs: [B, T, H]; mask: see ``attend``. Returns: [B, T, H]."""
        query, key, value = self.split_heads(self.query_key_value(inputs), 3)
        return self.attend(query, KeyValue(key, value), mask, training)[0]

    def empty_history(self, num_sentences: tf.Tensor) -> KeyValue:
        """Returns a history without places, for one beam: [B, A, 0, 1, D] each."""
        shape = [num_sentences, self.num_heads, 0, 1, self.head_size]
        nothing = tf.zeros(shape, self.compute_dtype)
        return KeyValue(nothing, nothing)

    def step(
        self,
        inputs: tf.Tensor,
        index: tf.Tensor,
        history: KeyValue,
        visible: tf.Tensor,
    ) -> tuple[tf.Tensor, KeyValue]:
        """One position of ``call``, for all beams of each sentence.

        Every beam looks at what all beams of its sentence wrote, and sees its own
        lineage of it. So each key is read once for all beams, and none ever moves.

        Args:
          inputs: [B, K, H].
          index: scalar int32, the position.
          history: keys and values of all beams so far, [B, A, T, K, D] each; given
            away: this position is written into them.
          visible: [B, 1, K, T * K] bool, see ``masks.lineage_mask``.

        Returns:
          outputs [B, K, H], and the history with this position in it.
        """
        query, key, value = self.split_heads(self.query_key_value(inputs), 3)
        write = write_in_place if self.writes_in_place else write_to_copy
        history = KeyValue(
            write(history.key, index, key), write(history.value, index, value)
        )
        shape = [tf.shape(key)[0], self.num_heads, -1, self.head_size]
        written = KeyValue(*(tf.reshape(part, shape) for part in history))
        return self.attend(query, written, visible, training=False)[0], history


def write_in_place(
    history: tf.Tensor, index: tf.Tensor, values: tf.Tensor
) -> tf.Tensor:
    """Returns ``history`` with ``values`` at position ``index``, in the same memory.

    ``tf.tensor_scatter_nd_update`` copies all of the history first, which costs more
    than looking at it.

    Args:
      history: [B, A, T, K, D].
      index: scalar int32.
      values: [B, A, K, D].
    """
    shape = tf.shape(history)
    size = history.shape[3] * history.shape[4]  # K * D
    first = tf.range(shape[0] * shape[1]) * shape[2]
    rows = tf.raw_ops.InplaceUpdate(
        x=tf.reshape(history, [-1, size]),  # [B * A * T, K * D]
        i=first + index,
        v=tf.reshape(values, [-1, size]),
    )
    return tf.reshape(rows, shape)


def write_to_copy(history: tf.Tensor, index: tf.Tensor, values: tf.Tensor) -> tf.Tensor:
    """Returns what ``write_in_place`` returns, and leaves ``history`` as it is."""
    is_here = tf.range(tf.shape(history)[2]) == index
    values = tf.expand_dims(values, 2)  # [B, A, 1, K, D]
    return tf.where(tf.reshape(is_here, [1, 1, -1, 1, 1]), values, history)


class CrossAttention(MultiHeadAttention):
    """Attention of a target to the encoder's outputs."""

    def __init__(self, hidden_size: int, *args, **kwargs):
        super().__init__(hidden_size, *args, **kwargs)
        self.query = Linear(hidden_size, name="query", **self.linear_options)
        self.key_value = Linear(
            2 * hidden_size, name="key_value", **self.linear_options
        )

    def call(
        self,
        inputs: tf.Tensor,
        source: tf.Tensor,
        mask: tf.Tensor,
        training: bool = False,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns outputs [B, T, H] and attention weights [B, A, T, S] float32.

        Args:
          inputs: [B, T, H].
          source: [B, S, H], the encoder's outputs.
          mask: [B, 1, 1, S] bool, see ``masks.padding_mask``.
        """
        return self.attend_to(inputs, self.memory(source), mask, training)

    def memory(self, source: tf.Tensor) -> KeyValue:
        """Args: source: [B, S, H]. Returns: [B, A, S, D] each."""
        return KeyValue(*self.split_heads(self.key_value(source), 2))

    def attend_to(
        self,
        inputs: tf.Tensor,
        memory: KeyValue,
        mask: tf.Tensor,
        training: bool = False,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """``call`` with the source's keys and values made before."""
        (query,) = self.split_heads(self.query(inputs), 1)
        return self.attend(query, memory, mask, training)

"""A trained model with its front end as one graph that stands alone."""

from __future__ import annotations

import tensorflow as tf

from oseq.contracts import DataSpec, Source
from oseq.data.graph_front_end import GraphFrontEnd
from oseq.export.compiled import compile_for_sources, rows_of
from oseq.export.sub_batches import (
    Hypotheses,
    SubBatchLimits,
    generate_in_sub_batches,
)
from oseq.models.model import Model


class Translator(tf.Module):
    """Answers text with text, or ids with ids, at any size of the batch.

    What is given is treated as infer mode treats the lines of a file: cut to
    ``max_length``, ended by EOS; blank text never reaches the model.

    Args:
      model: with trained weights.
      front_end: of the data that the model was trained on.
      spec: of the same data.
      limits: of what the model answers at once.

    Attributes:
      num_best: K, the hypotheses of a sentence.
      signatures: names of the methods that are to be saved; the first is the default.
    """

    signatures = ("translate", "translate_ids")

    def __init__(
        self,
        model: Model,
        front_end: GraphFrontEnd,
        spec: DataSpec,
        limits: SubBatchLimits,
    ):
        super().__init__()
        # Variables are what has to be saved. The model itself is not tracked, or
        # loading would look for the classes of its layers.
        self._variables = [weight.value for weight in model.variables]
        self._front_end = front_end
        self._spec = spec
        self._limits = limits
        ids = tf.TensorSpec([None, None], tf.int32)
        self._generate, predictions = compile_for_sources(model.generate, {"ids": ids})
        self.num_best = predictions["score"].shape[1]

    @tf.function(
        input_signature=[tf.TensorSpec([None], tf.string, "text")], autograph=False
    )
    def translate(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns the translations of text [B] string.

        Returns:
          text: [B, K] string, best first; "" for blank text.
          score: [B, K] float32; 0 for blank text.
        """
        found = self._answer(self._front_end.encode(text))
        shape = tf.shape(found.score)
        return {
            "text": tf.reshape(self._front_end.decode(found.ids), shape),
            "score": found.score,
        }

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, None], tf.int32, "ids"),
            tf.TensorSpec([None], tf.int32, "length"),
        ],
        autograph=False,
    )
    def translate_ids(self, ids: tf.Tensor, length: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns the translations of ids.

        Args:
          ids: [B, S] int32, as the tokenizer gives them: without EOS.
          length: [B] int32; what lies beyond is not looked at. 0 is blank text.

        Returns:
          ids: [B, K, T] int32, PAD after the end, without EOS.
          length: [B, K] int32.
          score: [B, K] float32; 0 where ``length`` was 0.
        """
        found = self._answer(rows_of(ids, length, "ids"))
        padded = found.ids.to_tensor(self._spec.pad_id)
        shape = [tf.shape(length)[0], self.num_best, tf.shape(padded)[1]]
        return {
            "ids": tf.reshape(padded, shape),
            "length": found.length,
            "score": found.score,
        }

    def _answer(self, tokens: tf.RaggedTensor) -> Hypotheses:
        return generate_in_sub_batches(
            self._generate,
            self._front_end.as_sources(tokens),
            self._padded,
            self.num_best,
            self._limits,
        )

    def _padded(self, tokens: tf.RaggedTensor) -> Source:
        return {
            "ids": tokens.to_tensor(self._spec.pad_id),
            "length": tf.cast(tokens.row_lengths(), tf.int32),
        }

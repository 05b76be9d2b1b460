"""The decoder of connectionist temporal classification."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from oseq.contracts import DataSpec, DecoderOutput, EncoderOutput, Target
from oseq.decoders.decoder import Decoder
from oseq.layers import masks
from oseq.layers.linear import Linear
from oseq.layers.token_embedding import TokenEmbedding


class FullyConnectedCTCDecoder(Decoder):
    """Scores every symbol at every frame by itself, with one dense layer.

    "Connectionist Temporal Classification", section 3. The blank is ``spec.pad_id``,
    which no label contains: CTC, attention and joint models have one id space. The
    other special ids are classes as well and simply never learned.
    """

    scores = frozenset({"frames"})

    def __init__(
        self,
        params: Mapping[str, Any],
        spec: DataSpec,
        policy: str,
        embedding: TokenEmbedding | None = None,
        *,
        name: str = "fc_ctc_decoder",
    ):
        super().__init__(params, spec, policy, embedding, name=name)
        self.dense = Linear(
            spec.target_vocab_size, **self.weight_options, name="dense", dtype=policy
        )

    def call(
        self, encoder_output: EncoderOutput, target: Target, training: bool = False
    ) -> DecoderOutput:
        """Returns the same as ``score_frames``: a frame knows no history."""
        return self.score_frames(encoder_output)

    def score_frames(self, encoder_output: EncoderOutput) -> DecoderOutput:
        """Returns logits [B, S', V] float32 and ``length`` [B], without a target."""
        outputs, length = encoder_output["outputs"], encoder_output["length"]
        valid = tf.sequence_mask(length, tf.shape(outputs)[1])
        logits = self.dense(masks.zero_padding(outputs, valid))
        return {"logits": tf.cast(logits, tf.float32), "length": length}

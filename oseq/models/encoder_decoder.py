"""A model of one encoder, one decoder and one loss."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from oseq.component import inherit_weight_options
from oseq.config.params import Param
from oseq.contracts import (
    Batch,
    DataSpec,
    DecoderOutput,
    EncoderOutput,
    LossOutput,
    Predictions,
    Scored,
)
from oseq.models.model import Model
from oseq.search.beam import BeamSearch
from oseq.search.scoring import score_tokens
from oseq.search.sentences import Request

_log = logging.getLogger(__name__)


class EncoderDecoderModel(Model):
    """Any encoder with any decoder whose contract it meets."""

    def __init__(self, params: Mapping[str, Any], spec: DataSpec, policy: str):
        super().__init__(params, spec, policy)
        self.encoder = self.params["encoder"](
            inherit_weight_options(self.params["encoder_params"], self.params),
            spec,
            policy,
        )
        shared = self.params["share_embeddings"] and spec.joint_vocabulary
        self.decoder = self.params["decoder"](
            inherit_weight_options(self.params["decoder_params"], self.params),
            spec,
            policy,
            self.encoder.embedding if shared else None,
        )
        _warn_of_depths(
            self.encoder.num_attending_layers, self.decoder.num_attending_layers
        )
        self.loss = self.params["loss"](self.params["loss_params"], spec)
        self.works_in_xla = self.loss.works_in_xla
        self.search = self.make_search()

    @staticmethod
    def get_required_params() -> dict[str, Param]:
        return {
            "encoder": Param(type, "class of the encoder"),
            "decoder": Param(type, "class of the decoder"),
            "loss": Param(type, "class of the loss"),
        }

    @staticmethod
    def get_optional_params() -> dict[str, Param]:
        return {
            "encoder_params": Param(dict, "its keys", {}, schema_of="encoder"),
            "decoder_params": Param(dict, "its keys", {}, schema_of="decoder"),
            "loss_params": Param(dict, "its keys", {}, schema_of="loss"),
            "search": Param(type, "class of the search for outputs", BeamSearch),
            "search_params": Param(dict, "its keys", {}, schema_of="search"),
            "share_embeddings": Param(
                bool, "one table for both sides if they have one vocabulary", True
            ),
            "initializer": Param(type, "for an encoder or decoder that names none"),
            "initializer_params": Param(dict, "its arguments", {}, "initializer"),
            "regularizer": Param(type, "for an encoder or decoder that names none"),
            "regularizer_params": Param(dict, "its arguments", {}, "regularizer"),
        }

    def make_search(self) -> Any:
        """Returns what ``generate`` looks for outputs with; for the constructor."""
        return self.params["search"](self.params["search_params"], self.spec)

    def call(self, batch: Batch, training: bool = False) -> DecoderOutput:
        encoded = self.encoder(batch["source"], training=training)
        return self.decoder(encoded, batch["target"], training=training)

    def compute_loss(self, batch: Batch, training: bool = False) -> LossOutput:
        return self.loss(self(batch, training=training), batch["target"])

    def generate(self, batch: Batch) -> Predictions:
        """Returns the best hypotheses of each source; see ``search_params``."""
        return self.search_encoded(batch, self.encoder(batch["source"], training=False))

    def search_encoded(self, batch: Batch, encoded: EncoderOutput) -> Predictions:
        """Returns the best hypotheses of sources that the encoder has read."""
        return self.search.search(
            self.decoder.step,
            self.decoder.initial_state(encoded),
            request_of(batch, encoded),
        )

    def score(self, batch: Batch) -> Scored:
        """Returns how likely each source makes its target, token by token."""
        outputs = self(batch, training=False)
        return Scored(
            score_tokens(outputs["logits"], batch["target"], self.spec),
            outputs["alignment"],
        )

    def build_weights(self) -> None:
        one = tf.ones([1], tf.int32)
        ids = tf.zeros([1, 1], tf.int32)
        source = {"ids": ids, "length": one}
        if self.spec.num_features:
            source = {
                "features": tf.zeros([1, 1, self.spec.num_features]),
                "length": one,
            }
        target = {"ids": ids, "length": one}
        self({"source": source, "target": target, "id": tf.zeros([1], tf.int64)})


def _warn_of_depths(expected: int | None, actual: int | None) -> None:
    if None not in (expected, actual) and expected != actual:
        _log.warning(
            "encoder_params/att_layer_num is %d, but %d layers of the decoder attend: "
            "gradients of the encoder are divided by twice the number given",
            expected,
            actual,
        )


def request_of(batch: Batch, encoded: EncoderOutput) -> Request:
    """Returns what a search must know of the sentences of a batch."""
    size = tf.shape(encoded["outputs"])[1]
    request: Request = {
        "id": batch["id"],
        "source_length": encoded["length"],
        "source_mask": tf.sequence_mask(encoded["length"], size),
    }
    if "prefix" in batch:
        request["prefix"] = batch["prefix"]
    if "phrases" in batch:
        request["phrases"] = batch["phrases"]
    return request

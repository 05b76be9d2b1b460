"""Speech recognition: from features of audio to text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from oseq.config.params import ConfigError, Param
from oseq.contracts import (
    Batch,
    DecoderOutput,
    EncoderOutput,
    Predictions,
    Result,
    Scored,
)
from oseq.metrics import speech, text
from oseq.models.encoder_decoder import EncoderDecoderModel
from oseq.search.beam import BeamSearch
from oseq.search.ctc_alignment import align_hypotheses
from oseq.search.ctc_greedy import CTCGreedySearch
from oseq.search.ctc_search import CTCSearch


class Speech2Text(EncoderDecoderModel):
    """An encoder of features with a CTC decoder, one that attends, or both in one.

    A CTC decoder scores frames: its output is found by a ``CTCSearch``. A decoder that
    attends is searched step by step. One that does both can be decoded either way;
    ``search`` decides.
    """

    best_metric = "WER"
    metric_names = ("WER", "CER", "exact_match")

    @staticmethod
    def get_optional_params() -> dict[str, Param]:
        return {
            **EncoderDecoderModel.get_optional_params(),
            "search": Param(
                type,
                "class of the search for outputs; None: CTCGreedySearch where the "
                "decoder is CTC alone, else BeamSearch",
            ),
        }

    def make_search(self) -> Any:
        """Returns the search.

        Raises:
          ConfigError: decoder, loss and search do not fit each other.
        """
        self._check_loss()
        scores = self.decoder.scores
        default = BeamSearch if "tokens" in scores else CTCGreedySearch
        kind = self.params["search"] or default
        if issubclass(kind, CTCSearch) and "frames" not in scores:
            raise ConfigError(
                f"search: {kind.__name__} decodes a CTC decoder, but "
                f"{self._decoder_name} attends; use BeamSearch or another step-by-step "
                "search, or choose FullyConnectedCTCDecoder"
            )
        if not issubclass(kind, CTCSearch) and "tokens" not in scores:
            raise ConfigError(
                f"search: {kind.__name__} decodes step by step, but "
                f"{self._decoder_name} scores frames; use CTCGreedySearch or "
                "CTCBeamSearch"
            )
        return kind(self.params["search_params"] or {}, self.spec)

    def search_encoded(self, batch: Batch, encoded: EncoderOutput) -> Predictions:
        if not isinstance(self.search, CTCSearch):
            return super().search_encoded(batch, encoded)
        frames = self.score_frames(encoded)
        return self.search.search_frames(frames["logits"], frames["length"])

    def generate_timed(self, batch: Batch) -> Predictions:
        """Returns what ``generate`` does, with the ``spans`` that CTC finds likeliest.

        Raises:
          ConfigError: the decoder has no CTC output.
        """
        encoded = self.encoder(batch["source"], training=False)
        frames = self.score_frames(encoded)
        predictions = self.search_encoded(batch, encoded)
        spans = align_hypotheses(frames, predictions, self.spec.pad_id)
        return {
            **predictions,
            "spans": self._in_source(spans, batch["source"]["length"]),
        }

    def score_frames(self, encoded: EncoderOutput) -> DecoderOutput:
        """Returns what CTC makes of each frame: logits [B, S', V] and ``length``.

        Raises:
          ConfigError: the decoder has no CTC output.
        """
        if "frames" not in self.decoder.scores:
            raise ConfigError(
                f"{self._decoder_name} attends and knows of no frames; choose a "
                "decoder with a CTC output: FullyConnectedCTCDecoder or "
                "JointCTCAttentionDecoder"
            )
        return self.decoder.score_frames(encoded)

    def score(self, batch: Batch) -> Scored:
        if "tokens" not in self.decoder.scores:
            raise ConfigError(
                f"{self._decoder_name} scores frames, not the tokens of a target: it "
                "has neither scores nor alignments of tokens; eval reports the loss, "
                "and --timestamps_file says when words are spoken"
            )
        return super().score(batch)

    def check_evaluation(self) -> None:
        speech.check_packages()

    def evaluate(self, results: Sequence[Result]) -> dict[str, float]:
        """Returns word and character error rate and exact match, in percent."""
        hypotheses = [result.hypotheses[0] for result in results]
        references = [result.reference or "" for result in results]
        return {
            "WER": speech.word_error_rate(hypotheses, references),
            "CER": speech.character_error_rate(hypotheses, references),
            "exact_match": text.exact_match(hypotheses, references),
        }

    def _in_source(self, spans: tf.Tensor, source_length: tf.Tensor) -> tf.Tensor:
        """Returns spans of frames, [B, K, T, 2], as those of source positions."""
        first, last = tf.unstack(spans * self.encoder.subsampling, axis=3)
        end = source_length[:, tf.newaxis, tf.newaxis] - 1
        last = tf.minimum(last + self.encoder.subsampling - 1, end)
        return tf.where(spans < 0, -1, tf.stack([first, last], axis=3))

    @property
    def _decoder_name(self) -> str:
        return type(self.decoder).__name__

    def _check_loss(self) -> None:
        scored, read = self.decoder.scores, self.loss.scores
        if scored == read:
            return
        wanted = {
            frozenset({"frames"}): "CTCLoss",
            frozenset({"tokens"}): "CrossEntropyWithSmoothing",
        }.get(scored, "MultiTaskCTCEntropyLoss")
        raise ConfigError(
            f"loss: {type(self.loss).__name__} reads logits of "
            f"{' and '.join(sorted(read))}, but {self._decoder_name} makes those of "
            f"{' and '.join(sorted(scored))}; use a loss such as {wanted}"
        )

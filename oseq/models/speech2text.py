"""Speech recognition: from features of audio to text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from oseq.config.params import ConfigError, Param
from oseq.contracts import Batch, DecoderOutput, Predictions, Result, Scored
from oseq.metrics import speech, text
from oseq.models.encoder_decoder import EncoderDecoderModel
from oseq.search.beam import BeamSearch
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

    def generate(self, batch: Batch) -> Predictions:
        if not isinstance(self.search, CTCSearch):
            return super().generate(batch)
        logits, length = self.frame_logits(batch)
        return self.search.search_frames(logits, length)

    def frame_logits(self, batch: Batch) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns what CTC makes of each frame: logits [B, S', V], and frames [B].

        Raises:
          ConfigError: the decoder has no CTC output.
        """
        if "frames" not in self.decoder.scores:
            raise ConfigError(
                f"{self._decoder_name} attends and knows of no frames; "
                "choose a decoder with a CTC output: FullyConnectedCTCDecoder or "
                "JointCTCAttentionDecoder"
            )
        encoded = self.encoder(batch["source"], training=False)
        outputs: DecoderOutput = self.decoder.score_frames(encoded)
        return outputs["logits"], outputs["length"]

    def score(self, batch: Batch) -> Scored:
        if "tokens" not in self.decoder.scores:
            raise ConfigError(
                f"{self._decoder_name} scores frames, not the tokens of a target: it "
                "has neither scores nor alignments of tokens; eval reports the loss, "
                "and --timestamps_file says when words are spoken"
            )
        return super().score(batch)

    def evaluate(self, results: Sequence[Result]) -> dict[str, float]:
        """Returns word and character error rate and exact match, in percent."""
        hypotheses = [result.hypotheses[0] for result in results]
        references = [result.reference or "" for result in results]
        return {
            "WER": speech.word_error_rate(hypotheses, references),
            "CER": speech.character_error_rate(hypotheses, references),
            "exact_match": text.exact_match(hypotheses, references),
        }

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

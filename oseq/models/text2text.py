"""Translation, summarization, and whatever else turns text into text."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from oseq.contracts import Result
from oseq.metrics import text
from oseq.models.encoder_decoder import EncoderDecoderModel

_log = logging.getLogger(__name__)


class Text2Text(EncoderDecoderModel):
    """An encoder-decoder model judged by the text that it writes."""

    best_metric = "BLEU"
    metric_names = ("BLEU", "chrF", "exact_match")

    def evaluate(self, results: Sequence[Result]) -> dict[str, float]:
        """Returns BLEU, chrF and exact match of the best hypotheses, 0 to 100."""
        hypotheses = [result.hypotheses[0] for result in results]
        references = [result.reference or "" for result in results]
        bleu, bleu_signature = text.bleu(hypotheses, references)
        chrf, chrf_signature = text.chrf(hypotheses, references)
        _log.info("BLEU: %s", bleu_signature)
        _log.info("chrF: %s", chrf_signature)
        return {
            "BLEU": bleu,
            "chrF": chrf,
            "exact_match": text.exact_match(hypotheses, references),
        }

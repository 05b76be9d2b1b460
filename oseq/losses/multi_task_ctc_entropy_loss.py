"""The loss of two decoders of one encoder: CTC, and one that attends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oseq.config.params import ConfigError, Param
from oseq.contracts import DataSpec, DecoderOutput, LossOutput, Target
from oseq.losses.basic_sequence_loss import BasicSequenceLoss
from oseq.losses.ctc_loss import CTCLoss
from oseq.losses.loss import Loss


class MultiTaskCTCEntropyLoss(Loss):
    """``(1 - lambda_value) * sequence loss + lambda_value * CTC loss``.

    "Joint CTC-Attention based End-to-End Speech Recognition using Multi-task
    Learning", equation 12. Both totals are sums over the utterances; the weight, by
    which their weighted sum is divided, is the sequence loss's alone: utterances, or
    tokens where that is what it averages over. So sums stay sums, and a label that is
    impossible for CTC loses its CTC half and nothing else.

    In parts: those of both.
    """

    scores = frozenset({"tokens", "frames"})
    works_in_xla = CTCLoss.works_in_xla

    def __init__(self, params: Mapping[str, Any], spec: DataSpec):
        super().__init__(params, spec)
        kind = self.params["seq_loss"]
        if not issubclass(kind, Loss) or kind.scores != {"tokens"}:
            raise ConfigError(
                f"seq_loss: expected a loss of tokens, got {kind.__name__}; such as "
                "CrossEntropyWithSmoothing"
            )
        self._sequence = kind(self.params["seq_loss_params"], spec)
        self._ctc = CTCLoss({}, spec)

    @staticmethod
    def get_required_params() -> dict[str, Param]:
        return {
            "lambda_value": Param(
                float, "share of CTC in the loss", minimum=0, maximum=1
            ),
        }

    @staticmethod
    def get_optional_params() -> dict[str, Param]:
        return {
            "seq_loss": Param(
                type, "class of the loss of the decoder that attends", BasicSequenceLoss
            ),
            "seq_loss_params": Param(dict, "its keys", {}, schema_of="seq_loss"),
        }

    def __call__(self, outputs: DecoderOutput, target: Target) -> LossOutput:
        share = self.params["lambda_value"]
        sequence = self._sequence(outputs, target)
        ctc = self._ctc(outputs["ctc"], target)
        total = (1.0 - share) * sequence.total + share * ctc.total
        return LossOutput(total, sequence.weight, {**sequence.parts, **ctc.parts})

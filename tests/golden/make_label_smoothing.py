"""Writes label_smoothing.json with PyTorch, which oseq's tests do not need.

    pip install torch && python tests/golden/make_label_smoothing.py

The loss is ``torch.nn.CrossEntropyLoss(label_smoothing=s, reduction="sum",
ignore_index=0)`` of seven positions and a vocabulary of eleven; the gradient is
PyTorch's automatic one. Two of the positions are padding.
"""

from __future__ import annotations

import json
from pathlib import Path

import torch

FILE = Path(__file__).with_name("label_smoothing.json")


def main() -> None:
    torch.manual_seed(0)
    logits = 3.0 * torch.randn(7, 11, dtype=torch.float64)
    labels = torch.tensor([4, 1, 9, 0, 10, 2, 0])
    cases = []
    for smoothing in (0.0, 0.1, 0.4):
        inputs = logits.clone().requires_grad_()
        loss = torch.nn.functional.cross_entropy(
            inputs,
            labels,
            label_smoothing=smoothing,
            reduction="sum",
            ignore_index=0,
        )
        loss.backward()
        cases.append(
            {
                "smoothing": smoothing,
                "loss": loss.item(),
                "gradient": inputs.grad.tolist(),
            }
        )
    golden = {
        "torch": torch.__version__,
        "logits": logits.tolist(),
        "labels": labels.tolist(),
        "cases": cases,
    }
    FILE.write_text(json.dumps(golden) + "\n")


if __name__ == "__main__":
    main()

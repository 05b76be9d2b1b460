"""Numeric modes by all the names that a config may use."""

from __future__ import annotations

import pytest
import tensorflow as tf

from oseq.precision import PRECISIONS, get_precision


@pytest.mark.parametrize(
    ("dtype", "policy", "needs_loss_scaling"),
    [
        (tf.float32, "float32", False),
        ("float32", "float32", False),
        ("mixed", "float16", True),
        (tf.float16, "float16", True),
        ("float16", "float16", True),
        ("mixed_bfloat16", "bfloat16", False),
        (tf.bfloat16, "bfloat16", False),
        ("bfloat16", "bfloat16", False),
    ],
)
def test_every_name_of_a_mode(dtype, policy, needs_loss_scaling):
    precision = get_precision(dtype)

    assert precision.policy == policy
    assert precision.needs_loss_scaling is needs_loss_scaling
    assert PRECISIONS[precision.name] is precision


@pytest.mark.parametrize("dtype", ["float64", tf.int32, "Mixed", None, 16, ["mixed"]])
def test_others_are_refused_with_the_choices(dtype):
    with pytest.raises(ValueError, match="float32, mixed, mixed_bfloat16"):
        get_precision(dtype)

from __future__ import annotations

import pytest
import tensorflow as tf

from oseq.layers.time_pooling import TimePooling

VECTORS = tf.constant(
    [[[1.0], [5.0], [3.0], [-7.0], [-2.0]], [[-4.0], [9.0]] * 2 + [[8.0]]]
)
LENGTH = tf.constant([5, 1])


@pytest.mark.parametrize(
    "size, stride, first, second",
    [
        (2, 2, [5, 3, -2], [-4, 0, 0]),
        (3, 2, [5, 3, -2], [-4, 0, 0]),
        (1, 3, [1, -7], [-4, 0]),
        (2, 1, [5, 5, 3, -2, -2], [-4, 0, 0, 0, 0]),
        (7, 5, [5], [-4]),
    ],
)
def test_the_largest_valid_value_is_taken(size, stride, first, second):
    outputs, length = TimePooling("max", size, stride)(VECTORS, LENGTH)

    assert length.numpy().tolist() == [len(first), 1]
    assert outputs.numpy()[..., 0].tolist() == [first, second]


def test_concatenation_fills_up_with_zeros():
    outputs, _ = TimePooling("concat", 2, 2)(VECTORS, LENGTH)

    assert outputs.numpy().tolist() == [
        [[1, 5], [3, -7], [-2, 0]],
        [[-4, 0], [0, 0], [0, 0]],
    ]

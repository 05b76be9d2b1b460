from __future__ import annotations

import pytest
import tensorflow as tf

from oseq.search.sentences import LENGTH_PARAMS, make_sentences
from tests.unit.search.toy_model import request_of

DEFAULTS = {key: param.default for key, param in LENGTH_PARAMS.items()}


def limits(source_length, params, **parts):
    """Returns the least and the most tokens of every sentence."""
    request = request_of(source_length, **parts)
    sentences = make_sentences({**DEFAULTS, **params}, request)
    return sentences.shortest.numpy().tolist(), sentences.longest.numpy().tolist()


def test_by_default_a_hypothesis_may_be_empty_or_fifty_longer_than_the_source():
    assert limits([0, 7], {}) == ([0, 0], [50, 57])


@pytest.mark.parametrize(
    ("length", "ratio", "least", "most"),
    [
        (10, 1.1, 11, 11),
        (110, 1.1, 121, 121),  # 121.00000000000001
        (3, 1.1, 4, 3),
        (90, 0.7, 63, 63),  # 62.99999999999999
        (100, 1.15, 115, 115),  # 114.99999999999999
        (7, 0.5, 4, 3),
        (0, 1.1, 0, 0),
        (20_000, 99.999, 1_999_980, 1_999_980),  # the product is 2 * 10^9
    ],
)
def test_ratios_are_exact(length, ratio, least, most):
    params = {"min_length_ratio": ratio, "max_length_ratio": 99.999}
    assert limits([length], params)[0] == [least]
    params = {"max_length_ratio": ratio, "extra_decode_length": 0}
    assert limits([length], params)[1] == [most]


def test_the_stricter_of_two_limits_holds():
    params = {"min_length": 3, "min_length_ratio": 0.5, "max_length": 8}
    assert limits([2, 12], {**params, "extra_decode_length": 2}) == ([3, 6], [4, 8])


def test_the_most_is_stronger_than_the_least():
    assert limits([10], {"min_length": 9, "max_length": 4}) == ([4], [4])


def test_there_is_room_for_what_must_be_there():
    prefix = {"ids": tf.zeros([3, 5], tf.int32), "length": tf.constant([5, 1, 0])}
    phrases = {
        "ids": tf.zeros([3, 2, 4], tf.int32),
        "length": tf.constant([[4, 1], [0, 0], [2, 0]]),
    }
    params = {"max_length": 3}
    assert limits([9] * 3, params, prefix=prefix)[1] == [5, 3, 3]
    assert limits([9] * 3, params, phrases=phrases)[1] == [5, 3, 3]
    both = {"prefix": prefix, "phrases": phrases}
    assert limits([9] * 3, params, **both)[1] == [10, 3, 3]

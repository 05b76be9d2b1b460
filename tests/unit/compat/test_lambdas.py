"""Lambdas that can move into another file, and those that cannot."""

from __future__ import annotations

import pytest
import tensorflow as tf

from oseq.compat.lambdas import source_of_lambda

LIMIT = 20.0


# fmt: off
@pytest.mark.parametrize(
    ("value", "source"),
    [
        (lambda x: tf.minimum(tf.nn.relu(x), 20.0),
         "lambda x: tf.minimum(tf.nn.relu(x), 20.0)"),
        (lambda x, scale=2: x * scale, "lambda x, scale=2: x * scale"),
        (lambda x: (
            tf.nn.elu(  # over lines
                x
            )
        ), "lambda x: tf.nn.elu(x)"),
        (lambda: 0, "lambda: 0"),
        (lambda x: [tf.abs(each) for each in x], None),
        (lambda x: tf.minimum(x, LIMIT), None),
        (lambda x: tf.log(x), None),
        (tf.nn.relu, None),
        (source_of_lambda, None),
        (3, None),
    ],
)
# fmt: on
def test_the_source_of_a_lambda(value, source):
    assert source_of_lambda(value) == source


def test_of_two_lambdas_in_a_line_each_has_its_own():
    one, other = lambda x: x + 1, lambda x: x + 2

    assert source_of_lambda(one) == "lambda x: x + 1"
    assert source_of_lambda(other) == "lambda x: x + 2"


def test_a_lambda_that_reads_its_surroundings_stays_where_it_is():
    limit = 3.0

    assert source_of_lambda(lambda x: tf.minimum(x, limit)) is None


def test_a_lambda_whose_file_is_gone_stays_a_lambda():
    assert source_of_lambda(eval("lambda x: x")) is None

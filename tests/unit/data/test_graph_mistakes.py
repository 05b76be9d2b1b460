from __future__ import annotations

import pytest
import tensorflow as tf

from oseq.data.graph_mistakes import keeping_mistakes, mistake_behind
from oseq.data.text_files import DataError


def error_of_graph(error):
    """Returns what comes out of a data set, one of whose threads raises."""

    def fail(number):
        raise error

    dataset = tf.data.Dataset.range(3).map(
        lambda number: tf.numpy_function(keeping_mistakes(fail), [number], tf.int64)
    )
    with pytest.raises(tf.errors.OpError) as caught:
        next(iter(dataset.prefetch(2)))
    return caught.value


@pytest.mark.parametrize("problems", ["a.wav: is damaged", ["one: bad", "two: bad"]])
def test_a_mistake_comes_out_of_a_graph_as_it_went_in(problems):
    mistake = DataError(problems)
    found = mistake_behind(error_of_graph(mistake))
    assert isinstance(found, DataError) and str(found) == str(mistake)


def test_other_errors_are_no_mistakes():
    error_of_graph(DataError("b.wav: is damaged"))
    assert mistake_behind(error_of_graph(ValueError("a bug"))) is None
    assert mistake_behind(ValueError("b.wav: is damaged")) is None

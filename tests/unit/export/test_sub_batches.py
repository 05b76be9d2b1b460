from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from oseq.export.sub_batches import SubBatchLimits, generate_in_sub_batches

NUM_BEST = 2


class Echo:
    """Answers a source with itself, and with itself backwards; notes what it sees."""

    def __init__(self):
        self.seen = []

    def __call__(self, batch):
        source = batch["source"]

        def answer(ids, length, identity):
            rows = zip(ids, length, strict=True)
            self.seen.append([row[:end].tolist() for row, end in rows])
            hypotheses = np.full((len(ids), NUM_BEST, ids.shape[1] + 3), 7, np.int32)
            for row, end in enumerate(length):
                hypotheses[row, 0, :end] = ids[row, :end]
                hypotheses[row, 1, :end] = ids[row, :end][::-1]
            lengths = np.stack([length] * NUM_BEST, axis=1)
            scores = np.stack([-identity, -identity - 1], axis=1).astype(np.float32)
            return hypotheses, lengths, scores

        found = tf.numpy_function(
            answer,
            [source["ids"], source["length"], batch["id"]],
            [tf.int32, tf.int32, tf.float32],
        )
        found[0].set_shape([None, NUM_BEST, None])
        found[1].set_shape([None, NUM_BEST])
        found[2].set_shape([None, NUM_BEST])
        return dict(zip(("ids", "length", "score"), found, strict=True))


def padded(rows):
    return {"ids": rows.to_tensor(0), "length": tf.cast(rows.row_lengths(), tf.int32)}


def answer(rows, echo=None, **limits):
    limits = SubBatchLimits(**{"max_tokens": None, "max_sentences": None} | limits)
    sources = tf.ragged.constant(rows, tf.int32, ragged_rank=1)
    function = tf.function(
        lambda given: generate_in_sub_batches(
            echo or Echo(), given, padded, NUM_BEST, limits
        ),
        input_signature=[tf.RaggedTensorSpec([None, None], tf.int32, 1)],
    )
    return function(sources)


def assert_answers(rows, found):
    expected = [hypothesis for row in rows for hypothesis in (row, row[::-1])]
    assert found.ids.to_list() == expected
    assert found.length.numpy().tolist() == [[len(row)] * NUM_BEST for row in rows]
    scores = [[-i, -i - 1] if row else [0, 0] for i, row in enumerate(rows)]
    assert found.score.numpy().tolist() == scores


ROWS = [[1, 2], [], [3], [4, 5, 6, 7], [8, 9], [], [10, 11, 12]]


@pytest.mark.parametrize("parallel", [1, 2])
@pytest.mark.parametrize("max_sentences", [None, 1, 2, 100])
@pytest.mark.parametrize("max_tokens", [None, 1, 4, 6, 100])
def test_every_source_has_its_answer_in_its_place(max_tokens, max_sentences, parallel):
    limits = {"max_tokens": max_tokens, "max_sentences": max_sentences}
    assert_answers(ROWS, answer(ROWS, **limits, parallel=parallel))


@pytest.mark.parametrize("rows", [[], [[]], [[], []], [[1]], [[], [1]]])
def test_batches_with_next_to_nothing_in_them(rows):
    found = answer(rows)
    assert_answers(rows, found)
    assert found.length.shape == found.score.shape == (len(rows), NUM_BEST)


def test_the_longest_come_first_and_no_limit_is_exceeded():
    echo = Echo()
    answer(ROWS, echo, max_tokens=6, max_sentences=3, parallel=1)
    assert echo.seen == [[[4, 5, 6, 7]], [[10, 11, 12], [1, 2]], [[8, 9], [3]]]


def test_a_source_longer_than_the_limit_is_alone():
    echo = Echo()
    answer(ROWS, echo, max_tokens=1)
    assert [len(rows) for rows in echo.seen] == [1] * 5


def test_blank_sources_never_reach_the_model():
    echo = Echo()
    answer([[], []], echo)
    assert echo.seen == []


@pytest.mark.parametrize(
    ("num_tokens", "largest"),
    [(4000, 4000), (6000, 1024), (24000, 3000), (80000, 4096)],
    ids=["one is enough", "not too small", "equal shares", "the limit"],
)
def test_a_large_batch_is_cut_into_equal_shares_for_the_cores(num_tokens, largest):
    echo = Echo()
    answer([[5] * 10] * (num_tokens // 10), echo, max_tokens=4096, parallel=2)
    assert max(len(batch) for batch in echo.seen) == largest // 10

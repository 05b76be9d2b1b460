"""CTC in chunks against CTC in one."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from oseq.search.ctc_greedy import CTCGreedySearch
from oseq.search.ctc_search import never_put_out
from oseq.search.ctc_stream import CTCStream
from tests.unit.search.ctc_reference import SPEC, hypotheses_of

V = SPEC.target_vocab_size


def peaky(*labels):
    return 5.0 * np.eye(V)[list(labels)]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 40])
def test_chunks_of_any_size_give_what_the_whole_gives(size):
    logits = np.random.default_rng(0).normal(size=(40, V)).astype(np.float32)
    logits[:, 1:4] += 2.0  # EOS, BOS and UNK are never put out
    logits = np.repeat(logits, 2, axis=0)[:40]  # each frame twice: repetitions
    whole = CTCGreedySearch({}, SPEC).search_frames(
        tf.constant(logits[np.newaxis]), tf.constant([40])
    )
    ((expected, _),) = hypotheses_of(whole, 0)

    stream = CTCStream(SPEC.pad_id, never_put_out(SPEC))
    parts = [stream.feed(logits[start : start + size]) for start in range(0, 40, size)]

    assert tuple(sum(parts, [])) == expected


def test_repetitions_merge_across_chunks_and_blanks_part_them():
    stream = CTCStream(blank=0)

    assert stream.feed(peaky(4, 4)) == [4]
    assert stream.feed(np.zeros((0, V))) == []
    assert stream.feed(peaky(4, 0)) == []
    assert stream.feed(peaky(4, 5)) == [4, 5]
    assert stream.feed(peaky(5, 6)) == [6]


def test_after_a_reset_another_utterance_begins():
    stream = CTCStream(blank=0)
    stream.feed(peaky(4, 5))

    stream.reset()

    assert stream.feed(peaky(5, 4)) == [5, 4]

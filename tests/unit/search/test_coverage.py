from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tests.unit.search.toy_model import (
    PENALTIES,
    SPEC,
    VOCAB_SIZE,
    ToyModel,
    assert_hypotheses,
    beam,
    brute_force,
)


class LookingModel(ToyModel):
    """A toy model whose attention follows from the token it reads."""

    def __init__(self, seed, num_sentences, source_size):
        super().__init__(seed, num_sentences, eos_bias=-1.0)
        generator = np.random.default_rng(seed)
        attention = generator.dirichlet([0.3] * source_size, size=VOCAB_SIZE)
        self.table = attention.astype(np.float32)

    def step(self, ids, index, state):
        logits, state = super().step(ids, index, state)
        return logits, {**state, "alignment": tf.gather(self.table, ids)}

    def coverage_penalty(self, tokens, source_length):
        """Returns Wu et al.'s, over the steps that made ``tokens`` and EOS."""
        coverage = self.table[[SPEC.bos_id, *tokens]].astype(np.float64).sum(axis=0)
        return np.log(np.clip(coverage[:source_length], 1e-10, 1)).sum()


@pytest.mark.parametrize("weight", [0.2, 2.0])
@pytest.mark.parametrize(("penalty", "alpha"), [("gnmt", 0.6), ("average", 1.0)])
def test_a_full_search_finds_the_best_with_the_coverage_penalty(weight, penalty, alpha):
    source_length = [4, 2, 3]
    model = LookingModel(seed=1, num_sentences=3, source_size=4)
    search = beam(4**4, alpha, penalty, num_best=10, coverage_penalty=weight)
    predictions = model.search(search, tf.constant(source_length))
    for sentence, length in enumerate(source_length):
        found = [
            (score + weight * model.coverage_penalty(tokens, length), tokens)
            for score, tokens in brute_force(model, sentence, length, penalty, alpha)
        ]
        expected = sorted(found, reverse=True)[:10]
        assert expected != found[:10]
        assert_hypotheses(predictions, sentence, expected)


def test_coverage_moves_with_the_beams():
    """With few beams, which change places: each score has its own coverage."""
    model = LookingModel(seed=2, num_sentences=6, source_size=8)
    search = beam(3, 0.6, num_best=3, coverage_penalty=0.5)
    predictions = model.search(search, 8)
    ids, length = predictions["ids"].numpy(), predictions["length"].numpy()
    for sentence in range(6):
        for rank in range(3):
            tokens = tuple(ids[sentence, rank, : length[sentence, rank]].tolist())
            score = model.log_probability(sentence, tokens)
            score = PENALTIES["gnmt"](score, len(tokens) + 1, 0.6)
            score += 0.5 * model.coverage_penalty(tokens, 8)
            np.testing.assert_allclose(
                predictions["score"][sentence, rank], score, rtol=1e-5
            )


def test_a_position_without_any_attention_leaves_the_score_finite():
    model = LookingModel(seed=3, num_sentences=2, source_size=3)
    model.table[:] = [1.0, 0.0, 0.0]
    predictions = model.search(beam(2, coverage_penalty=1.0), 3)
    assert np.isfinite(predictions["score"].numpy()).all()
    assert (predictions["score"].numpy() < 2 * np.log(1e-10)).all()

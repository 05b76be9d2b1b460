"""A tiny language model as a step function, with references in NumPy.

The logits depend on the sentence (memory) and on all tokens so far (carry), so a
search that reorders one without the other, or the wrong way, goes wrong.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import tensorflow as tf

from oseq.contracts import DataSpec
from oseq.search.beam import BeamSearch
from oseq.search.greedy import GreedySearch

VOCAB_SIZE = 6  # four of which can be emitted: EOS and 3, 4, 5
SPEC = DataSpec(target_vocab_size=VOCAB_SIZE)  # PAD 0, EOS 1, BOS 2
WORDS = (3, 4, 5)
_NUM_HISTORIES = 97
_POWERS = [pow(7, age, _NUM_HISTORIES) for age in range(_NUM_HISTORIES)]

PENALTIES = {
    "gnmt": lambda score, length, alpha: score / ((5 + length) / 6) ** alpha,
    "average": lambda score, length, alpha: score / length**alpha,
    "word_reward": lambda score, length, alpha: score + alpha * length,
}


def beam(beam_size, alpha=0.0, length_penalty="gnmt", num_best=1, **params):
    """Returns a beam search whose limits are the sources' lengths."""
    params = {
        "beam_size": beam_size,
        "alpha": alpha,
        "length_penalty": length_penalty,
        "num_best": num_best,
        "extra_decode_length": 0,
        **params,
    }
    return BeamSearch(params, SPEC)


def greedy(**params):
    """Returns a greedy search whose limits are the sources' lengths."""
    return GreedySearch({"extra_decode_length": 0, **params}, SPEC)


def request_of(source_length, **parts):
    """Returns a request for sentences of the given lengths, [B]."""
    length = tf.convert_to_tensor(source_length, tf.int32)
    return {
        "id": tf.range(tf.size(length, tf.int64)),
        "source_length": length,
        "source_mask": tf.sequence_mask(tf.maximum(length, 1)),
        **parts,
    }


class ToyModel:
    """Draws a distribution for every sentence and history of tokens.

    Args:
      seed: of the distributions.
      num_sentences: B.
      eos_bias: added to the logit of EOS; negative values make long sentences.
    """

    def __init__(self, seed: int, num_sentences: int, eos_bias: float = 0.0):
        generator = np.random.default_rng(seed)
        shape = (num_sentences, _NUM_HISTORIES, VOCAB_SIZE)
        self.logits = generator.normal(scale=2.0, size=shape).astype(np.float32)
        self.logits[:, :, SPEC.eos_id] += eos_bias
        # Whoever forgets to mask PAD and BOS will emit them all the time.
        self.logits[:, :, [SPEC.pad_id, SPEC.bos_id]] += 10.0
        self.num_steps = 0  # that were run eagerly
        self.num_sentences = num_sentences
        self.source_size = 1

    def state(self):
        history = tf.zeros([self.num_sentences], tf.int32)
        return {
            "memory": {"sentence": tf.range(self.num_sentences)},
            # Two leaves of different rank that must stay together.
            "carry": {"history": history, "copy": [tf.tile(history[:, None], [1, 2])]},
            # [B, X, T, K]: the tokens again, found by the lineage.
            "history": tf.zeros([self.num_sentences, 2, 0, 1], tf.int32),
        }

    def step(self, ids, index, state):
        self.num_steps += 1
        carry = state["carry"]
        history = (carry["history"] * 7 + ids) % _NUM_HISTORIES
        copy = (carry["copy"][0] * 7 + ids[:, None]) % _NUM_HISTORIES
        written, past = self._read_history(ids, index, state)
        # All three say the same unless the search mixes something up.
        place = (history - copy[:, 0] + tf.reshape(past, [-1])) % _NUM_HISTORIES
        sentence = tf.repeat(state["memory"]["sentence"], past.shape[1])
        where = tf.stack([sentence, place], axis=1)
        logits = tf.gather_nd(tf.constant(self.logits), where)
        return logits, {
            "memory": state["memory"],
            "carry": {"history": history, "copy": [copy]},
            "history": written,
            "alignment": self.attention(index, tf.size(ids)),
        }

    def _read_history(self, ids, index, state):
        """Returns the history with ``ids`` in it, and the hash of each past, [B, K]."""
        lineage, written = state["lineage"], state["history"]
        num_beams = lineage.shape[1]
        is_here = tf.range(tf.shape(written)[2])[:, None] == index  # [T, 1]
        ids = tf.reshape(ids, [-1, 1, 1, num_beams])
        written = tf.where(is_here, ids, written)  # [B, X, T, K]
        is_mine = lineage[..., None] == tf.range(num_beams)  # [B, K, T, K]
        tokens = tf.reduce_sum(tf.where(is_mine, written[:, 1:], 0), axis=3)
        age = tf.maximum(index - tf.range(tf.shape(lineage)[2]), 0)
        weights = tf.gather(_POWERS, age)
        return written, tf.reduce_sum(tokens * weights, axis=2) % _NUM_HISTORIES

    def attention(self, index, num_rows):
        """Returns [N, S']: beams look at the source from left to right."""
        size = self.source_size
        return tf.repeat(tf.one_hot([index % size], size), num_rows, axis=0)

    def forgetful_step(self, ids, index, state):
        """As ``step``, but with no static shape in the new carry."""

        def forget(leaf):
            return tf.reshape(leaf, tf.shape(leaf) + 0 * index)

        logits, state = self.step(ids, index, state)
        return logits, {
            **state,
            "carry": tf.nest.map_structure(forget, state["carry"]),
            "history": forget(state["history"]),
        }

    def search(self, search, max_length, **parts):
        """Searches with a limit for all sentences or one for each."""
        source_length = tf.broadcast_to(max_length, [self.num_sentences])
        request = request_of(source_length, **parts)
        self.source_size = request["source_mask"].shape[1]
        return search.search(self.step, self.state(), request)

    def log_probabilities(self, sentence: int, tokens: tuple[int, ...]) -> np.ndarray:
        """Returns [V], of the token after ``tokens``."""
        history = 0
        for token in (SPEC.bos_id, *tokens):
            history = (history * 7 + token) % _NUM_HISTORIES
        logits = self.logits[sentence, history].astype(np.float64)
        logits[[SPEC.pad_id, SPEC.bos_id]] = -np.inf
        return logits - np.log(np.exp(logits).sum())

    def log_probability(self, sentence: int, tokens: tuple[int, ...]) -> float:
        """Returns that of ``tokens`` and EOS."""
        total = 0.0
        for place, token in enumerate((*tokens, SPEC.eos_id)):
            total += self.log_probabilities(sentence, tokens[:place])[token]
        return total


def brute_force(model, sentence, max_length, penalty, alpha):
    """Returns every (score, tokens) there is, best first."""
    found = []
    for length in range(max_length + 1):
        for tokens in itertools.product(WORDS, repeat=length):
            score = model.log_probability(sentence, tokens)
            found.append((PENALTIES[penalty](score, length + 1, alpha), tokens))
    return sorted(found, reverse=True)


def plain_beam_search(
    model, sentence, beam_size, max_length, penalty, alpha, most=None
):
    """Returns (score, tokens), best first: beam search that never stops early.

    Except for ``most``: then after the step that completes so many hypotheses.
    """
    live, found = [(0.0, ())], []
    for length in range(max_length + 1):
        candidates = []
        for score, tokens in live:
            row = model.log_probabilities(sentence, tokens)
            candidates += [
                (score + row[token], (*tokens, token))
                for token in (SPEC.eos_id, *WORDS)
                if length < max_length or token == SPEC.eos_id
            ]
        candidates.sort(reverse=True)
        for score, tokens in candidates[:beam_size]:
            if tokens[-1] == SPEC.eos_id:
                penalized = PENALTIES[penalty](score, length + 1, alpha)
                found.append((penalized, tokens[:-1]))
        if most is not None and len(found) >= most:
            break
        live = [c for c in candidates if c[1][-1] != SPEC.eos_id][:beam_size]
    return sorted(found, reverse=True)


def assert_hypotheses(predictions, sentence, expected):
    """Asserts ids, lengths, padding and scores of one sentence, best first."""
    ids = predictions["ids"].numpy()[sentence]
    length = predictions["length"].numpy()[sentence]
    score = predictions["score"].numpy()[sentence]
    for rank, (expected_score, tokens) in enumerate(expected):
        assert tuple(ids[rank, : length[rank]]) == tokens
        assert (ids[rank, length[rank] :] == SPEC.pad_id).all()
        assert math.isclose(score[rank], expected_score, rel_tol=1e-5, abs_tol=1e-5)

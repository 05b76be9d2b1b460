"""Progress in phrases, against a plain search of the tokens."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from oseq.search.phrases import next_tokens, progress_of, tokens_needed, tokens_there

PHRASES = [(3,), (3, 4), (4, 3, 4), (3, 3, 4), (4, 4, 4, 3), ()]
LENGTH = [len(phrase) for phrase in PHRASES]
PAD, SIZE = 0, 4


def contains(tokens, phrase):
    starts = range(len(tokens) - len(phrase) + 1)
    return any(tokens[i : i + len(phrase)] == phrase for i in starts)


def beginning(tokens, phrase):
    """Returns how much of a phrase that is not there ``tokens`` end with."""
    return max(
        length
        for length in range(len(phrase))
        if tokens[len(tokens) - length :] == phrase[:length]
    )


def tokens_of(tokens, phrase):
    met = contains(tokens, phrase)
    return len(phrase) if met else beginning(tokens, phrase)


def draw(index):
    """Returns phrases and beams [2, 50, 8] of ``index`` tokens, two words."""
    ids = np.full([len(PHRASES), SIZE], PAD, np.int32)
    for place, phrase in enumerate(PHRASES):
        ids[place, : len(phrase)] = phrase
    phrases = {
        "ids": tf.constant(np.stack([ids, ids[::-1]])),
        "length": tf.constant([LENGTH, LENGTH[::-1]]),
    }
    beams = np.full([2, 50, 8], PAD, np.int32)
    beams[:, :, :index] = np.random.default_rng(index).integers(3, 5, [2, 50, index])
    return phrases, beams


def test_beams_have_the_phrases_and_beginnings_that_are_in_their_tokens():
    for index in range(9):
        phrases, beams = draw(index)
        progress = progress_of(tf.constant(beams), phrases, tf.constant(index))
        following = next_tokens(progress, phrases).numpy()
        for sentence, order in enumerate((PHRASES, PHRASES[::-1])):
            for beam in range(50):
                tokens = tuple(beams[sentence, beam, :index].tolist())
                is_met = [contains(tokens, phrase) for phrase in order]
                assert progress.is_met[sentence, beam].numpy().tolist() == is_met
                for place, phrase in enumerate(order):
                    if not is_met[place]:
                        expected = phrase[beginning(tokens, phrase)]
                        assert following[sentence, beam, place] == expected


def test_one_more_token_is_counted_as_if_it_were_there_already():
    for index in range(8):
        phrases, beams = draw(index)
        progress = progress_of(tf.constant(beams), phrases, tf.constant(index))
        generator = np.random.default_rng(100 + index)
        chosen = generator.integers(0, 50, [2, 30]).astype(np.int32)
        token = generator.integers(3, 6, [2, 30]).astype(np.int32)
        there = tokens_there(progress, phrases, tf.constant(chosen), tf.constant(token))
        needed = tokens_needed(there, phrases).numpy()
        for sentence, order in enumerate((PHRASES, PHRASES[::-1])):
            for place, beam in enumerate(chosen[sentence]):
                past = beams[sentence, beam, :index].tolist()
                tokens = (*past, int(token[sentence, place]))
                expected = [tokens_of(tokens, phrase) for phrase in order]
                assert there[sentence, place].numpy().tolist() == expected
                missing = [
                    (len(phrase), begun)
                    for phrase, begun in zip(order, expected, strict=True)
                    if begun < len(phrase)
                ]
                most = max((begun for _, begun in missing), default=0)
                whole = sum(length for length, _ in missing)
                assert needed[sentence, place] == whole - most

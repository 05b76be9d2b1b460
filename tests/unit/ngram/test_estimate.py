"""Models made of text: their probabilities, and what they are worth."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from oseq.ngram import BackoffModel, estimate, write_arpa
from oseq.ngram.language_model import SENTENCE_END, UNKNOWN

# Text with structure: each word has favourite successors.
WORDS = [f"w{place}" for place in range(30)]


def sentences(seed, number):
    generator = np.random.default_rng(seed)
    for _ in range(number):
        word = generator.integers(30)
        sentence = []
        for _ in range(generator.integers(1, 9)):
            sentence.append(WORDS[word])
            word = (word * 7 + generator.geometric(0.4)) % 30
        yield sentence


def vocabulary(model: BackoffModel) -> list[str]:
    return [word for (word,) in model.tables[0] if word != "<s>"]


def perplexity(model, texts):
    texts = list(texts)
    total = sum(model.score(text) for text in texts)
    return 10.0 ** (-total / sum(len(text) + 1 for text in texts))


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("number", [2, 300])
def test_the_probabilities_after_every_context_add_up_to_one(order, closed, number):
    model = estimate(sentences(0, number), order, closed_vocabulary=closed)
    words = [word for word in vocabulary(model) if word != UNKNOWN or not closed]
    contexts = [(), ("<s>",), ("w1", "nobody said this", "w2")]
    contexts += [ngram for table in model.tables[:-1] for ngram in table]

    for context in contexts[:: max(1, len(contexts) // 200)]:
        state = model.nothing
        for word in context:
            _, state = model.advance(state, word)
        total = sum(10.0 ** model.advance(state, word)[0] for word in words)
        assert total == pytest.approx(1.0, abs=1e-9), context


def test_it_is_kneser_ney_by_hand():
    # Bigrams: <s> a 2, a b 1, a </s> 1, b </s> 1; discounts are the fallback's.
    model = estimate([["a", "b"], ["a"]], order=2)

    # Of single words the numbers of their contexts: a 1, b 1, </s> 2, of 4 in all.
    gamma = (0.5 + 0.5 + 1.0) / 4
    uniform = 1 / 4  # a, b, </s> and <unk>
    single = {
        "a": (1 - 0.5) / 4 + gamma * uniform,
        "b": (1 - 0.5) / 4 + gamma * uniform,
        "</s>": (2 - 1.0) / 4 + gamma * uniform,
        "<unk>": gamma * uniform,
    }
    assert sum(single.values()) == pytest.approx(1.0)
    assert model.score(["a"], bos=False, eos=False) == pytest.approx(
        math.log10(single["a"])
    )
    after_a = (0.5 + 0.5) / 2
    expected = {
        "b": (1 - 0.5) / 2 + after_a * single["b"],
        "</s>": (1 - 0.5) / 2 + after_a * single["</s>"],
        "a": after_a * single["a"],
        "zebra": after_a * single["<unk>"],
    }
    for word, probability in expected.items():
        log10, _ = model.advance(("a",), word)
        assert 10**log10 == pytest.approx(probability), word


def test_discounts_are_those_of_chen_and_goodman():
    # One word each of counts 1 (8), 2 (4), 3 (2), 4 (1): Y = 8 / 16.
    counts = [1] * 8 + [2] * 4 + [3] * 2 + [4]
    text = [[f"x{i}"] * n for i, n in enumerate(counts)]
    # </s> is counted 15 times, and is no part of n_1 to n_4.
    model = estimate(text, order=1)

    total = sum(counts) + 15
    discounts = [1 - 2 * 0.5 * 4 / 8, 2 - 3 * 0.5 * 2 / 4, 3 - 4 * 0.5 * 1 / 2]
    left = 8 * discounts[0] + 4 * discounts[1] + 4 * discounts[2]
    for word, count, discount in (("x0", 1, 0), ("x8", 2, 1), ("x14", 4, 2)):
        expected = (count - discounts[discount]) / total + left / total / 17
        assert 10 ** model.advance((), word)[0] == pytest.approx(expected)


def test_longer_ngrams_foresee_unseen_text_better():
    text, unseen = list(sentences(1, 500)), list(sentences(2, 100))

    of_order = [perplexity(estimate(text, order), unseen) for order in (1, 2, 3)]

    assert of_order[1] < 0.5 * of_order[0]
    assert of_order[2] < 1.2 * of_order[1]  # the text is a Markov chain


def test_only_a_closed_vocabulary_makes_the_unknown_impossible():
    text = list(sentences(3, 50))
    opened, closed = (estimate(text, 2, closed_vocabulary=c) for c in (False, True))

    assert -5 < opened.advance(opened.start, "zebra")[0] < -1
    assert closed.advance(closed.start, "zebra")[0] < -99
    for word in WORDS:
        assert closed.advance((), word)[0] > opened.advance((), word)[0]
    assert "w1" in opened and "zebra" not in opened


@pytest.mark.parametrize("order", [2, 3, 4])
def test_kenlm_agrees_about_every_word(order, tmp_path):
    kenlm = pytest.importorskip("kenlm")
    model = estimate(sentences(4, 200), order)
    write_arpa(model, str(tmp_path / "lm.arpa"))
    other = kenlm.Model(str(tmp_path / "lm.arpa"))

    for sentence in [*sentences(5, 50), [], ["zebra", "w1", "zebra", "zebra"]]:
        for bos, eos in itertools.product((True, False), repeat=2):
            expected = other.score(" ".join(sentence), bos=bos, eos=eos)
            assert model.score(sentence, bos=bos, eos=eos) == pytest.approx(
                expected, abs=1e-4
            )


def test_words_of_one_sentence_are_enough():
    for order, expected in ((2, 2), (3, 3), (6, 3)):  # <s> a </s> is all there is
        model = estimate([["a"]], order)

        assert model.order == expected
        assert model.score(["a"]) > model.score(["a", "a"])
        assert SENTENCE_END in model

"""CTC prefix beam search against the sum over all paths."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import tensorflow as tf

from oseq.config.params import ConfigError, UserError
from oseq.ngram import estimate, write_arpa
from oseq.search.ctc_beam import CTCBeamSearch
from oseq.search.ctc_greedy import CTCGreedySearch
from tests.unit.search.ctc_reference import (
    SPEC,
    all_sequences,
    hypotheses_of,
    log_softmax,
    plain_prefix_search,
)

V = SPEC.target_vocab_size
ALL = 400  # more than there are sequences
EXACT = {"min_symbol_log_probability": -1000.0}


def search(logits, length=None, spec=SPEC, **params):
    logits = np.asarray(logits, np.float32)
    length = [logits.shape[1]] * len(logits) if length is None else length
    return CTCBeamSearch({"beam_width": ALL, **EXACT, **params}, spec).search_frames(
        tf.constant(logits), tf.constant(length, tf.int32)
    )


def random_logits(seed, *shape, scale=1.0):
    return np.random.default_rng(seed).normal(scale=scale, size=(*shape, V))


def best_of(totals, number):
    return sorted(totals.items(), key=lambda item: -item[1])[:number]


def assert_equal(found, expected):
    assert [ids for ids, _ in found] == [ids for ids, _ in expected]
    np.testing.assert_allclose(
        [score for _, score in found], [score for _, score in expected], rtol=1e-5
    )


@pytest.mark.parametrize("num_frames", [1, 2, 5])
def test_a_wide_beam_is_the_sum_over_all_paths(num_frames):
    logits = random_logits(0, 3, num_frames)
    logits[:, :, 1:4] += 2.0  # EOS, BOS and UNK are never put out

    predictions = search(logits, num_best=20 if num_frames > 2 else 4)

    for row in range(3):
        totals = all_sequences(log_softmax(logits[row]))
        number = predictions["score"].shape[1]
        assert_equal(hypotheses_of(predictions, row), best_of(totals, number))


def test_the_score_is_minus_the_loss():
    logits = random_logits(1, 1, 5)
    ((ids, score),) = hypotheses_of(search(logits), 0)

    loss = tf.nn.ctc_loss(
        tf.constant([ids], tf.int32),
        tf.constant(logits, tf.float32),
        tf.constant([len(ids)]),
        tf.constant([5]),
        logits_time_major=False,
        blank_index=0,
    )

    assert score == pytest.approx(-float(loss[0]), rel=1e-5)


def test_a_narrow_beam_finds_what_is_clear():
    logits = random_logits(2, 8, 30)
    best = np.random.default_rng(3).integers(4, V, size=(8, 30))
    best[:, ::3] = 0
    logits[np.arange(8)[:, None], np.arange(30), best] += 12.0
    greedy = CTCGreedySearch({}, SPEC).search_frames(
        tf.constant(logits, tf.float32), tf.fill([8], 30)
    )

    for beam_width in (1, 4):
        predictions = search(logits, beam_width=beam_width)
        for row in range(8):
            ((ids, score),) = hypotheses_of(predictions, row)
            ((greedy_ids, greedy_score),) = hypotheses_of(greedy, row)
            assert ids == greedy_ids
            assert score >= greedy_score - 1e-4


@pytest.mark.parametrize("beam_width", [1, 2, 5, 16])
def test_a_narrow_beam_loses_and_finds_prefixes_as_the_plain_search_does(beam_width):
    logits = random_logits(11, 10, 25, scale=1.5)
    predictions = search(logits, beam_width=beam_width, num_best=beam_width)

    for row in range(10):
        expected = plain_prefix_search(log_softmax(logits[row]), beam_width)
        assert_equal(hypotheses_of(predictions, row), expected)


def test_hypotheses_are_distinct_and_best_first():
    found = hypotheses_of(
        search(random_logits(4, 1, 20), beam_width=16, num_best=16), 0
    )

    assert len({ids for ids, _ in found}) == 16
    assert [score for _, score in found] == sorted((s for _, s in found), reverse=True)


def test_an_utterance_does_not_depend_on_the_others():
    logits = random_logits(5, 4, 8)
    length = [8, 5, 0, 1]
    together = search(logits, length, num_best=3, beam_width=8)
    for row, frames in enumerate(length):
        logits[row, frames:] = [np.nan, np.nan, np.inf, -np.inf][row]
    dirty = search(logits, length, num_best=3, beam_width=8)

    for row, frames in enumerate(length):
        alone = search(
            logits[row : row + 1, :frames], [frames], num_best=3, beam_width=8
        )
        assert hypotheses_of(together, row) == hypotheses_of(alone, 0)
        assert hypotheses_of(together, row) == hypotheses_of(dirty, row)
    assert hypotheses_of(together, 2) == [((), 0.0)] + [((), -math.inf)] * 2


def test_nothing_gives_nothing():
    assert search(np.zeros((0, 3, V)))["ids"].shape == (0, 1, 0)
    assert hypotheses_of(search(np.zeros((1, 0, V))), 0) == [((), 0.0)]


def test_it_runs_in_a_graph_and_knows_its_shapes():
    beam = CTCBeamSearch({"num_best": 2}, SPEC)
    logits = tf.constant(random_logits(6, 2, 6), tf.float32)

    @tf.function
    def in_graph(logits, length):
        predictions = beam.search_frames(logits, length)
        assert predictions["ids"].shape.as_list() == [2, 2, None]
        assert predictions["score"].shape == predictions["length"].shape == (2, 2)
        return predictions

    length = tf.constant([6, 4])
    graph, eager = in_graph(logits, length), beam.search_frames(logits, length)

    for row in range(2):
        assert hypotheses_of(graph, row) == hypotheses_of(eager, row)
    assert not beam.is_exportable


def test_each_frame_has_its_own_symbols():
    logits = random_logits(13, 10, 25, scale=2.0)
    predictions = search(logits, beam_width=6, min_symbol_log_probability=-2.0)

    for row in range(10):
        frames = log_softmax(logits[row])
        expected = plain_prefix_search(frames, beam_width=6, least=-2.0)
        assert_equal(hypotheses_of(predictions, row), expected[:1])


def test_unlikely_symbols_are_left_out_of_a_frame():
    logits = np.zeros((1, 2, V))
    logits[0, :, 4:] = [2.0, 1.0, 0.0]
    totals = all_sequences(log_softmax(logits[0]), symbols=(4, 5))

    by_number = search(logits, max_symbols=2, num_best=5)
    least = float(log_softmax(logits[0])[0, 5]) - 0.1
    by_probability = search(logits, min_symbol_log_probability=least, num_best=5)

    assert_equal(hypotheses_of(by_number, 0), best_of(totals, 5))
    assert_equal(hypotheses_of(by_probability, 0), best_of(totals, 5))


# With a language model. Ids 4, 5, 6 are "a", "b" and space, or subwords.

SPECIALS = ("", "", "", "")
CHARACTERS = dataclasses.replace(SPEC, symbols=(*SPECIALS, "a", "b", " "))
SUBWORDS = dataclasses.replace(SPEC, symbols=(*SPECIALS, " a", "b", " b"))
ODD = dataclasses.replace(SPEC, symbols=(*SPECIALS, "a ", "b", " a b"))
TEXT = [["a", "b"], ["ab", "a"], ["b", "a", "b"], ["a", "ab"]]


@pytest.fixture(scope="module")
def model():
    return estimate(TEXT, order=3)


@pytest.fixture
def arpa(model, tmp_path):
    path = str(tmp_path / "lm.arpa")
    write_arpa(model, path)
    return path


def words_of(ids, spec):
    return tuple("".join(spec.symbols[i] for i in ids).split())


def best_spellings(totals, number, spec):
    """Returns the best sequences of different words."""
    best = {}
    for ids, total in best_of(totals, len(totals)):
        best.setdefault(words_of(ids, spec), (ids, total))
    return list(best.values())[:number]


@pytest.mark.parametrize("spec", [CHARACTERS, SUBWORDS, ODD])
def test_of_hypotheses_that_spell_the_same_words_the_best_one_counts(spec):
    logits = random_logits(14, 2, 5)
    predictions = search(logits, spec=spec, num_best=15)

    for row in range(2):
        totals = all_sequences(log_softmax(logits[row]))
        found = hypotheses_of(predictions, row)
        assert_equal(found, best_spellings(totals, 15, spec))
        assert len({words_of(ids, spec) for ids, _ in found}) == 15


def with_model(totals, units_of, model, alpha, beta):
    """Returns the totals with what a language model says of whole texts."""
    fused = {}
    for ids, total in totals.items():
        units = units_of(ids)
        log10 = model.score(units)
        fused[ids] = total + alpha * log10 * math.log(10) + beta * len(units)
    return fused


@pytest.mark.parametrize("spec", [CHARACTERS, SUBWORDS, ODD])
def test_words_are_scored_by_the_language_model(spec, model, arpa):
    logits = random_logits(7, 2, 5)
    predictions = search(
        logits, spec=spec, language_model=arpa, alpha=0.7, beta=0.4, num_best=20
    )

    for row in range(2):
        totals = all_sequences(log_softmax(logits[row]))
        fused = with_model(totals, lambda ids: words_of(ids, spec), model, 0.7, 0.4)
        expected = best_spellings(fused, 20, spec)
        assert_equal(hypotheses_of(predictions, row), expected)


@pytest.mark.parametrize("spec", [CHARACTERS, SUBWORDS])
def test_symbols_are_scored_by_the_language_model(spec, tmp_path):
    text = [[s.replace(" ", "\u2581") for s in spec.symbols[4:]], ["a"], ["b", "a"]]
    model = estimate(text, order=3)
    path = str(tmp_path / "symbols.arpa")
    write_arpa(model, path)
    logits = random_logits(8, 2, 5)
    predictions = search(
        logits,
        spec=spec,
        language_model=path,
        language_model_unit="symbol",
        alpha=0.3,
        beta=-0.2,
        num_best=20,
    )

    def symbols_of(ids):
        return [spec.symbols[i].replace(" ", "\u2581") for i in ids]

    for row in range(2):
        totals = all_sequences(log_softmax(logits[row]))
        fused = with_model(totals, symbols_of, model, 0.3, -0.2)
        expected = best_spellings(fused, 20, spec)
        assert_equal(hypotheses_of(predictions, row), expected)


def test_a_narrow_beam_with_a_language_model_is_the_plain_search(tmp_path):
    text = [["a"], ["b", "a"], ["a", "\u2581", "b"], ["b", "\u2581"]] * 3
    model = estimate(text, order=3)
    path = str(tmp_path / "symbols.arpa")
    write_arpa(model, path)
    logits = random_logits(12, 10, 25, scale=1.5)
    # A bonus well above 0 makes longer prefixes better, even where all others stay.
    params = {"language_model": path, "language_model_unit": "symbol", "alpha": 0.5}
    predictions = search(logits, spec=CHARACTERS, beam_width=6, beta=2.5, **params)

    def bonus(ids):
        units = [CHARACTERS.symbols[i].replace(" ", "\u2581") for i in ids]
        return 0.5 * math.log(10) * model.score(units, eos=False) + 2.5 * len(ids)

    def end(ids):
        units = [CHARACTERS.symbols[i].replace(" ", "\u2581") for i in ids]
        return 0.5 * math.log(10) * model.score(units) + 2.5 * len(ids) - bonus(ids)

    for row in range(10):
        beam = plain_prefix_search(log_softmax(logits[row]), 6, bonus)
        expected = max(((ids, score + end(ids)) for ids, score in beam), key=_score)
        assert_equal(hypotheses_of(predictions, row), [expected])


def _score(hypothesis):
    return hypothesis[1]


def test_a_language_model_changes_what_is_unclear(tmp_path):
    # "a?b" where ? is as likely nothing as a space: the text knows "ab" alone, or not.
    logits = np.full((1, 3, V), -8.0)
    logits[0, 0, 4] = logits[0, 2, 5] = 8.0
    logits[0, 1, [0, 6]] = 8.0
    for text, expected in (([["ab"]], (4, 5)), ([["a", "b"]], (4, 6, 5))):
        path = str(tmp_path / "lm.arpa")
        write_arpa(estimate(text * 5, order=2), path)

        predictions = search(
            logits, spec=CHARACTERS, language_model=path, beam_width=8, alpha=1.0
        )

        assert hypotheses_of(predictions, 0)[0][0] == expected


def test_a_language_model_of_other_symbols_is_refused(arpa):
    spec = dataclasses.replace(SPEC, symbols=(*SPECIALS, "x", "y", " "))
    params = {"language_model": arpa, "language_model_unit": "symbol"}

    with pytest.raises(ConfigError, match="knows none of the symbols"):
        CTCBeamSearch(params, spec)
    CTCBeamSearch(params, CHARACTERS)


@pytest.mark.parametrize(("text", "is_told"), [("BAA BAB", True), ("baa BAB", False)])
def test_a_language_model_of_other_words_is_told_once(text, is_told, tmp_path, caplog):
    path = str(tmp_path / "lm.arpa")
    write_arpa(estimate([text.split()], order=2), path)
    beam = CTCBeamSearch({"language_model": path, "alpha": 0.01}, CHARACTERS)
    # Each utterance is other words of a and b, spelled with blanks between.
    words = [f"{number:b}".translate({48: "a", 49: "b"}) for number in range(4, 40)]
    logits = np.full((len(words), 12, V), -9.0)
    logits[:, :, 0] = 5.0
    for row, word in zip(logits, words, strict=True):
        for place, letter in enumerate(word):
            row[2 * place, CHARACTERS.symbols.index(letter)] = 20.0

    for _ in range(2):
        beam.search_frames(tf.constant(logits, tf.float32), tf.fill([len(words)], 12))

    messages = [each for each in caplog.messages if "language_model: " in each]
    assert len(messages) == is_told
    if is_told:
        assert "knows none of the first 20 words that were decoded" in messages[0]
        assert "'baa'" in messages[0]


def test_mistakes_are_told_before_anything_is_decoded(arpa, tmp_path):
    with pytest.raises(ConfigError, match="num_best: 5 hypotheses are more"):
        CTCBeamSearch({"beam_width": 4, "num_best": 5}, SPEC)
    with pytest.raises(ConfigError, match="language_model: the data layer"):
        CTCBeamSearch({"language_model": arpa}, SPEC)
    with pytest.raises(UserError, match="nothing.arpa: cannot be read"):
        missing = str(tmp_path / "nothing.arpa")
        CTCBeamSearch({"language_model": missing}, CHARACTERS)

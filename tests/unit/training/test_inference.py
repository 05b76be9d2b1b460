from __future__ import annotations

import io
import json
import math

import numpy as np
import pytest
import tensorflow as tf

from oseq.config.params import ConfigError
from oseq.data.word_alignment import NOTHING, AlignedText
from oseq.data.word_times import TimedWord
from oseq.distributed.worker import SingleWorker
from oseq.training.inference import (
    Answer,
    Inference,
    write_answer,
    write_attention,
    write_links,
    write_times,
)
from tests.unit.training.fakes import (
    AlignedDataLayer,
    AlignedModel,
    TinyDataLayer,
    TinyModel,
    on_workers,
)


def built():
    model = TinyModel()
    model(next(iter(TinyDataLayer().dataset())))
    return model


def answers_of(data_layer, worker):
    return list(Inference(built(), worker).answers(data_layer))


def write(answers, file):
    for answer in answers:
        write_answer(answer, file)


@pytest.mark.parametrize("blank", [[], [0], [6], [2, 3], list(range(7))])
def test_every_line_has_its_answer_in_its_place(blank):
    data_layer = TinyDataLayer("infer")
    data_layer.blank_ids = np.array(blank, np.int64)
    answers = answers_of(data_layer, SingleWorker())
    assert [answer.id for answer in answers] == list(range(7))
    for answer in answers:
        is_blank = answer.id in blank
        expected = "" if is_blank else data_layer.text_of("source", answer.id)
        assert answer.hypotheses[0] == expected


def test_a_blank_line_has_as_many_hypotheses_as_the_others():
    data_layer = TinyDataLayer("infer")
    data_layer.blank_ids = np.array([0], np.int64)
    blank, *others = answers_of(data_layer, SingleWorker())
    assert (blank.hypotheses, blank.scores) == (["", ""], [0.0, 0.0])
    assert all(len(answer.hypotheses) == 2 for answer in others)


def test_a_single_hypothesis_is_the_whole_line():
    file = io.StringIO()
    write([Answer(0, ["a b"], [-1.0]), Answer(1, [""], [0.0])], file)
    assert file.getvalue() == "a b\n\n"


def test_a_caller_who_infers_often_compiles_once():
    model = built()
    calls = []
    generate = model.generate
    model.generate = lambda batch: calls.append(batch) or generate(batch)
    inference = Inference(model, SingleWorker())
    first = list(inference.answers(TinyDataLayer("infer")))
    second = list(inference.answers(TinyDataLayer("infer", num_examples=3)))
    assert second == first[:3]
    assert len(calls) == 1


@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize(
    ("num_lines", "blank"),
    [(7, []), (7, [0, 3, 6]), (2, []), (3, [0, 1]), (2, [0, 1]), (0, [])],
)
def test_any_number_of_workers_gives_the_answers_of_one(size, num_lines, blank):
    model = built()

    def answer(worker):
        data_layer = TinyDataLayer("infer", worker, num_lines)
        data_layer.blank_ids = np.array(blank, np.int64)
        return list(Inference(model, worker).answers(data_layer))

    whole = answer(SingleWorker())
    assert [each.id for each in whole] == list(range(num_lines))
    if len(blank) < num_lines:  # some workers decode nothing and learn the number
        assert {len(each.hypotheses) for each in whole} == {2}
    assert on_workers(size, answer) == [whole] * size


def test_a_hypothesis_never_takes_more_than_its_line():
    file = io.StringIO()
    write([Answer(0, ["a\nb\r\nc\rd"], [0.0]), Answer(1, [""], [0.0])], file)
    assert file.getvalue() == "a b  c d\n\n"


def test_a_hypothesis_that_there_is_not_has_no_line_in_any_file():
    """Its score is -inf; only where there is none at all the line number stays."""
    words = [[TimedWord("a", 0.0, 1.0)], []]
    alignments = [AlignedText(["x"], ["a"], np.ones((1, 1)), "a"), NOTHING]
    answers = [
        Answer(0, ["a", ""], [-1.0, -math.inf], alignments, words, "a.wav"),
        Answer(1, ["", ""], [-math.inf] * 2, [NOTHING] * 2, [[], []], "b.wav"),
    ]
    lines = {}
    for each in (write_answer, write_links, write_attention, write_times):
        file = io.StringIO()
        for answer in answers:
            each(answer, file)
        lines[each] = file.getvalue().splitlines()

    assert lines[write_answer] == ["0 ||| a ||| -1.0000", "1 |||  ||| -inf"]
    assert {len(each) for each in lines.values()} == {2}


def test_n_best_lines_have_number_text_and_score():
    file = io.StringIO()
    answers = [
        Answer(0, ["a b", "a\nc"], [-0.5, -1.25]),
        Answer(1, ["", ""], [0.0, 0.0]),
    ]
    write(answers, file)
    assert file.getvalue() == (
        "0 ||| a b ||| -0.5000\n0 ||| a c ||| -1.2500\n"
        "1 |||  ||| 0.0000\n1 |||  ||| 0.0000\n"
    )


def aligned_answers(blank=(), with_alignments=True, replaces_unknown=False):
    data_layer = AlignedDataLayer("infer")
    data_layer.blank_ids = np.array(blank, np.int64)
    data_layer.replaces_unknown = replaces_unknown
    inference = Inference(AlignedModel(), SingleWorker(), with_alignments)
    return list(inference.answers(data_layer))


def test_answers_have_an_alignment_for_each_hypothesis_if_asked():
    for line, answer in enumerate(aligned_answers(blank=[2])):
        if line == 2:
            assert answer == Answer(2, ["", ""], [0.0, 0.0], [NOTHING, NOTHING])
            continue
        assert [aligned.text for aligned in answer.alignments] == answer.hypotheses
        assert all(text.startswith(f"{line}: ") for text in answer.hypotheses)
        for aligned in answer.alignments:
            np.testing.assert_array_equal(aligned.attention, np.eye(line % 3 + 1))


def test_unknown_words_are_replaced_without_alignments_in_the_answer():
    for line, answer in enumerate(
        aligned_answers(with_alignments=False, replaces_unknown=True)
    ):
        assert all(text.startswith(f"{line}: ") for text in answer.hypotheses)
        assert not answer.alignments


def test_links_and_attention_have_a_line_for_each_hypothesis():
    attention = np.array([[1 / 3, 2 / 3], [1, 0]], np.float32)
    aligned = AlignedText(["Wal", " \u00e9"], ["a", " whale"], attention, "a whale")
    answers = [
        Answer(0, ["a whale", ""], [0.0, 0.0], [aligned, NOTHING]),
        Answer(1, ["a whale"], [0.0], [aligned]),
    ]
    links, lines = io.StringIO(), io.StringIO()
    for answer in answers:
        write_links(answer, links)
        write_attention(answer, lines)
    assert links.getvalue() == "1-0 0-1\n\n1-0 0-1\n"
    first, second, third = map(json.loads, lines.getvalue().splitlines())
    assert (
        first
        == third
        == {
            "source": ["Wal", " \u00e9"],
            "target": ["a", " whale"],
            "attention": [[0.3333, 0.6667], [1.0, 0.0]],
        }
    )
    assert second == {"source": [], "target": [], "attention": []}


class TimedModel(TinyModel):
    """Repeats the source; every id has two positions of its own."""

    def generate_timed(self, batch):
        predictions = self.generate(batch)
        shape = tf.shape(predictions["ids"])
        first = 2 * tf.broadcast_to(tf.range(shape[2]), shape)
        return {**predictions, "spans": tf.stack([first, first + 1], axis=3)}


class TimedDataLayer(TinyDataLayer):
    """Half a second per position; each id is a word."""

    seconds_per_position = 0.5

    def surfaces(self, ids):
        return [f" {value}" for value in ids]


def timed_answers(data_layer):
    data_layer.blank_ids = np.array([2], np.int64)
    inference = Inference(TimedModel(), SingleWorker(), with_times=True)
    return list(inference.answers(data_layer))


def test_every_hypothesis_has_a_line_with_its_file_and_the_times_of_its_words():
    file = io.StringIO()
    for answer in timed_answers(TimedDataLayer("infer")):
        write_times(answer, file)

    lines = [json.loads(line) for line in file.getvalue().splitlines()]
    assert len(lines) == 2 * 7
    sources = [TimedDataLayer("infer").text_of("source", line) for line in range(7)]
    assert [line["file"] for line in lines[::2]] == sources
    assert lines[4]["words"] == lines[5]["words"] == []  # a blank line
    assert lines[2]["words"] == [
        {"word": "2", "start": 0.0, "end": 1.0},
        {"word": "3", "start": 1.0, "end": 2.0},
    ]


def test_times_are_refused_where_the_source_has_none():
    with pytest.raises(ConfigError, match="TinyDataLayer: its source has no time"):
        timed_answers(TinyDataLayer("infer"))


def test_a_time_that_is_unknown_is_null():
    file = io.StringIO()
    answer = Answer(0, ["a"], [0.0], (), [[TimedWord("a", None, None)]], "a.wav")

    write_times(answer, file)

    assert json.loads(file.getvalue()) == {
        "file": "a.wav",
        "words": [{"word": "a", "start": None, "end": None}],
    }

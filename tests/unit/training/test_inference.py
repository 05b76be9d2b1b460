from __future__ import annotations

import io

import numpy as np
import pytest

from oseq.distributed.worker import SingleWorker
from oseq.training.evaluator import compile_generate
from oseq.training.inference import Answer, infer, write_answers
from tests.unit.training.fakes import TinyDataLayer, TinyModel


def built():
    model = TinyModel()
    model(next(iter(TinyDataLayer().dataset())))
    return model


@pytest.mark.parametrize("blank", [[], [0], [6], [2, 3], list(range(7))])
def test_every_line_has_its_answer_in_its_place(blank):
    data_layer = TinyDataLayer("infer")
    data_layer.blank_ids = np.array(blank, np.int64)
    answers = list(infer(built(), data_layer, SingleWorker()))
    assert [answer.id for answer in answers] == list(range(7))
    for answer in answers:
        is_blank = answer.id in blank
        expected = "" if is_blank else data_layer.text_of("source", answer.id)
        assert answer.hypotheses[0] == expected
    file = io.StringIO()
    write_answers(answers, file)
    assert file.getvalue().split("\n")[:-1] == [a.hypotheses[0] for a in answers]


def test_a_caller_who_infers_often_compiles_once():
    model, data_layer = built(), TinyDataLayer("infer")
    generate = compile_generate(model, data_layer.dataset())
    first = list(infer(model, data_layer, SingleWorker(), generate))
    other = TinyDataLayer("infer", num_examples=3)
    second = list(infer(model, other, SingleWorker(), generate))
    assert second == first[:3]
    assert generate.experimental_get_tracing_count() == 1


def test_two_workers_answer_in_the_order_of_the_input():
    model = built()
    workers = [SingleWorker(), SingleWorker()]
    layers = []
    for rank, worker in enumerate(workers):
        worker.rank, worker.size = rank, 2
        layers.append(TinyDataLayer("infer", worker))
    gathered = []
    workers[0].gather_objects = lambda value: gathered.append(value) or [value]
    with pytest.raises(RuntimeError, match="no example for line 1"):
        list(infer(model, layers[0], workers[0]))
    workers[1].gather_objects = lambda value: [gathered[0], value]
    answers = list(infer(model, layers[1], workers[1]))
    assert [answer.hypotheses[0] for answer in answers] == [
        layers[1].text_of("source", line) for line in range(7)
    ]


def test_a_hypothesis_never_takes_more_than_its_line():
    file = io.StringIO()
    write_answers([Answer(0, ["a\nb\r\nc\rd"], [0.0]), Answer(1, [""], [0.0])], file)
    assert file.getvalue() == "a b  c d\n\n"


def test_n_best_lines_have_number_text_and_score():
    file = io.StringIO()
    answers = [
        Answer(0, ["a b", "a\nc", "d"], [-0.5, -1.25, -2.0]),
        Answer(1, [""], [0.0]),
    ]
    write_answers(answers, file, num_best=2)
    assert file.getvalue() == (
        "0 ||| a b ||| -0.5000\n0 ||| a c ||| -1.2500\n1 |||  ||| 0.0000\n"
    )

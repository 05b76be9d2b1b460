"""TFLite translates greedily as the checkpoint does, with its built-in operations."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from oseq.build import build_trained_model, build_worker
from oseq.config.loader import load_config
from oseq.config.options import Options
from oseq.config.overrides import parse_overrides
from oseq.export import tflite
from oseq.export.export_error import ExportError
from tests.integration import toy

EXPORT = ("--mode=export", "--export_format=tflite", "--export_dir=export")


@pytest.mark.parametrize(
    "search",
    [
        ("--search_params/beam_size=4",),
        ("--search_params/max_length_ratio=1.5", "--search_params/min_length=3"),
    ],
    ids=["a beam, which becomes greedy", "limits of the length"],
)
def test_an_export_is_verified_in_another_process(run, search):
    outcome = toy.succeed(*toy.TINY, "--logdir=run", *EXPORT, *search)
    assert "exported to export" in outcome.err
    assert {"model.tflite", "src_vocab_file"} <= {
        p.name for p in Path("export").iterdir()
    }


@pytest.mark.filterwarnings("ignore:.*tf.lite.Interpreter is deprecated")
def test_batches_of_any_size_and_length_are_answered(run):
    toy.succeed(*toy.TINY, "--logdir=run", *EXPORT)
    interpreter = tf.lite.Interpreter("export/model.tflite")
    ids, length = (detail["index"] for detail in interpreter.get_input_details())
    for shape in ((1, 3), (4, 2)):
        interpreter.resize_tensor_input(ids, shape)
        interpreter.resize_tensor_input(length, shape[:1])
        interpreter.allocate_tensors()
        interpreter.set_tensor(ids, np.full(shape, 4, np.int32))
        interpreter.set_tensor(length, np.full(shape[:1], shape[1], np.int32))
        interpreter.invoke()
        shapes = [
            interpreter.get_tensor(detail["index"]).shape
            for detail in interpreter.get_output_details()
        ]
        assert shapes[0][:2] == shapes[1] == shapes[2] == (shape[0], 1)


@pytest.mark.parametrize(
    "argument, message",
    [
        (
            "--search_params/no_repeat_ngram_size=2",
            "search_params/no_repeat_ngram_size: TFLite fails",
        ),
        ("--dtype=mixed_bfloat16", "weights in bfloat16; use --dtype=float32"),
    ],
)
def test_what_it_fails_on_is_refused(run, argument, message):
    outcome = toy.oseq(*toy.TINY, "--logdir=run", *EXPORT, argument)
    assert outcome.code == 2
    assert message in outcome.err
    assert not Path("export").exists()


def test_operations_that_it_does_not_have_are_named(run, monkeypatch):
    greedy_search = tflite._greedy_search

    def with_rounded_scores(model):
        generate = greedy_search(model)

        def rounded(batch):
            found = generate(batch)
            score = tf.cast(tf.round(tf.cast(found["score"], tf.float64)), tf.float32)
            return {**found, "score": score}

        return rounded

    monkeypatch.setattr(tflite, "_greedy_search", with_rounded_scores)
    config = load_config(run / "config.yaml", parse_overrides(["--logdir=run"]))
    trained = build_trained_model(
        config, "infer", Options(), build_worker(config, "infer")
    )
    with pytest.raises(ExportError, match="does not take this model: operations Round"):
        tflite.export_tflite(trained.model, trained.data_layer, Path("export"))
    assert not Path("export").exists()

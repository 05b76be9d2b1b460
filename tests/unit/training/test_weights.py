"""Checkpoints across dtypes, models and vocabularies."""

from __future__ import annotations

import dataclasses
import logging

import numpy as np
import pytest

from oseq.contracts import DataSpec
from oseq.training import checkpoint as checkpoints
from oseq.training.averaging import average, average_last
from oseq.training.checkpoint import CheckpointError
from oseq.training.hooks.checkpointing import CheckpointHook
from oseq.training.warm_start import load_model
from oseq.training.weights import restore_weights
from tests.unit.training.fakes import (
    VOCABULARY,
    TinyDataLayer,
    TinyModel,
    make_run,
    saved_run,
)

SPEC = DataSpec(VOCABULARY, VOCABULARY)


def built(policy="float32", vocabulary=VOCABULARY):
    model = TinyModel(policy, vocabulary)
    model(next(iter(TinyDataLayer().dataset())))
    return model


def test_every_variable_is_in_the_checkpoint(tmp_path):
    run, path = saved_run(tmp_path)
    tensors = checkpoints.read(path).tensors
    expected = {f"weights/{weight.path}" for weight in run.model.weights}
    expected |= {"random/0/0000", *run.optimizer.state}
    assert tensors.keys() == expected
    assert len(run.model.variables) == len(run.model.weights) + 1


@pytest.mark.parametrize(
    ("saved", "loaded"),
    [
        ("float32", "bfloat16"),
        ("bfloat16", "float32"),
        ("float16", "bfloat16"),
        ("bfloat16", "float16"),
    ],
)
def test_a_checkpoint_of_any_dtype_loads_in_any_other(tmp_path, saved, loaded):
    run, path = saved_run(tmp_path, policy=saved, last_step=2)
    masters = {name: value.numpy() for name, value in run.optimizer.masters.items()}
    tensors = checkpoints.read(path).tensors
    for name, master in masters.items():
        assert tensors[f"weights/{name}"].dtype == np.float32
        np.testing.assert_array_equal(tensors[f"weights/{name}"], master)
    other = make_run(policy=loaded)
    other.trainer.restore(path)
    for name, master in masters.items():
        np.testing.assert_array_equal(other.optimizer.masters[name].numpy(), master)
    inference = built(loaded)
    restore_weights(inference, checkpoints.read(path), SPEC)
    for weight, trained in zip(inference.weights, other.model.weights, strict=True):
        assert weight.dtype == loaded
        np.testing.assert_array_equal(weight.numpy(), trained.numpy())


def test_inference_takes_the_averaged_weights(tmp_path):
    run, path = saved_run(tmp_path, ema_decay=0.9)
    model = built()
    restore_weights(model, checkpoints.read(path), SPEC)
    averages = run.average.averages["tiny/dense/kernel"].numpy()
    np.testing.assert_array_equal(model.dense.kernel.numpy(), averages)
    assert not np.array_equal(averages, run.model.dense.kernel.numpy())


def test_an_unbuilt_model_is_refused(tmp_path):
    _, path = saved_run(tmp_path)
    with pytest.raises(CheckpointError, match="build the model"):
        restore_weights(TinyModel(), checkpoints.read(path), SPEC)


def test_all_missing_unknown_and_misshapen_names_are_in_one_error(tmp_path):
    run, path = saved_run(tmp_path)
    checkpoint = checkpoints.read(path)
    tensors = dict(checkpoint.tensors)
    tensors["weights/tiny/new/kernel"] = tensors.pop("weights/tiny/dense/bias")
    tensors["optimizer/more"] = tensors.pop("optimizer/iterations")
    tensors["weights/tiny/dense/kernel"] = np.zeros((2, 2), np.float32)
    checkpoints.write(path, tensors, checkpoint.header)
    before = run.model.dense.kernel.numpy()
    with pytest.raises(CheckpointError) as error:
        run.trainer.restore(path)
    for problem in (
        "missing: weights/tiny/dense/bias",
        "missing: optimizer/iterations",
        "unknown: weights/tiny/new/kernel",
        "unknown: optimizer/more",
        "shape: weights/tiny/dense/kernel is (2, 2) in the checkpoint, (4, 8) here",
    ):
        assert problem in str(error.value)
    np.testing.assert_array_equal(run.model.dense.kernel.numpy(), before)


def test_vocabularies_of_another_size_or_order_are_refused(tmp_path):
    _, path = saved_run(tmp_path)
    checkpoint = checkpoints.read(path)
    with pytest.raises(CheckpointError, match="source vocabulary has 8 .* data 9"):
        restore_weights(built(), checkpoint, DataSpec(9, VOCABULARY))
    with pytest.raises(CheckpointError, match="another order"):
        restore_weights(built(), checkpoint, SPEC, "another")


@pytest.mark.parametrize("policy", ["float32", "bfloat16"])
def test_warm_start_grows_what_has_more_rows(tmp_path, caplog, policy):
    run, _ = saved_run(tmp_path / "checkpoints")
    larger = make_run(policy=policy, vocabulary=11)
    initial = larger.optimizer.masters["tiny/embedding/embeddings"].numpy()
    kernel = larger.optimizer.masters["tiny/dense/kernel"].numpy()
    with caplog.at_level(logging.INFO):
        report = load_model(tmp_path, larger.model, larger.optimizer)
    embedding = larger.optimizer.masters["tiny/embedding/embeddings"].numpy()
    np.testing.assert_array_equal(embedding[:8], run.model.embedding.embeddings.numpy())
    np.testing.assert_array_equal(embedding[8:], initial[8:])
    np.testing.assert_allclose(
        np.asarray(larger.model.embedding.embeddings.numpy(), np.float32),
        embedding,
        rtol=0.01,
    )
    # The last dimension differs, which cannot be told from another width.
    np.testing.assert_array_equal(
        larger.optimizer.masters["tiny/dense/kernel"].numpy(), kernel
    )
    assert report.loaded == report.missing == report.unused == []
    assert len(report.grown) == 2  # embedding and bias
    assert report.skipped == ["tiny/dense/kernel (4, 8) is not (4, 11)"]
    assert "1 skipped: tiny/dense/kernel" in caplog.text


def test_warm_start_names_missing_and_unused(tmp_path):
    run, path = saved_run(tmp_path)
    checkpoint = checkpoints.read(path)
    tensors = dict(checkpoint.tensors)
    tensors["weights/old"] = tensors.pop("weights/tiny/dense/bias")
    checkpoints.write(path, tensors, checkpoint.header)
    fresh = make_run()
    report = load_model(path, fresh.model, fresh.optimizer)
    assert report.missing == ["tiny/dense/bias"]
    assert report.unused == ["old"]
    assert report.loaded == ["tiny/embedding/embeddings", "tiny/dense/kernel"]
    np.testing.assert_array_equal(
        fresh.model.dense.kernel.numpy(), run.model.dense.kernel.numpy()
    )
    assert int(fresh.optimizer.iterations.numpy()) == 0


def test_averaging_the_last_checkpoints(tmp_path):
    run = make_run(last_step=6, hooks=[CheckpointHook(tmp_path, 1, 4)])
    run.trainer.run()
    path = average_last(tmp_path, 3)
    assert path == tmp_path / "average" / "step-0000006.safetensors"
    averaged = checkpoints.read(path)
    assert averaged.header.notes == {"averaged_steps": [6, 5, 4]}
    parts = [
        checkpoints.read(checkpoints.path_of(tmp_path / "checkpoints", step))
        for step in (4, 5, 6)
    ]
    for name, value in averaged.tensors.items():
        mean = np.mean([part.tensors[name].astype(float) for part in parts], axis=0)
        np.testing.assert_allclose(value, mean, rtol=1e-6)
        assert value.dtype == np.float32
    model = built()
    restore_weights(model, averaged, SPEC)
    np.testing.assert_array_equal(
        model.dense.bias.numpy(), averaged.tensors["weights/tiny/dense/bias"]
    )


def test_averaging_different_models_is_refused(tmp_path):
    _, first = saved_run(tmp_path / "a")
    _, second = saved_run(tmp_path / "b", vocabulary=9)
    with pytest.raises(CheckpointError, match="different models"):
        average([first, second], tmp_path)
    with pytest.raises(CheckpointError, match="no checkpoints"):
        average([], tmp_path)


def test_header_survives_averaging_apart_from_its_notes(tmp_path):
    _, path = saved_run(tmp_path)
    header = checkpoints.read_header(path)
    averaged = checkpoints.read_header(average([path], tmp_path / "average"))
    assert averaged == dataclasses.replace(header, notes={"averaged_steps": [4]})

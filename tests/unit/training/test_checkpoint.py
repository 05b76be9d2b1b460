from __future__ import annotations

import dataclasses
import json
import logging
import os

import numpy as np
import pytest
import safetensors

from oseq.contracts import Position
from oseq.training import checkpoint as checkpoints
from oseq.training.checkpoint import CheckpointError, Header

HEADER = Header(
    step=3,
    position=Position(1, 2),
    notes={"best": {"name": "BLEU", "value": 31.5, "step": 2}},
    source_vocab_size=8,
    target_vocab_size=9,
    vocabulary_fingerprint="abc",
    data={"num_examples": 7, "batches_per_epoch": 4, "workers": 1},
    dtype="mixed",
    oseq_version="0.1",
)
TENSORS = {
    "weights/a": np.arange(6, dtype=np.float32).reshape(2, 3).T,
    "optimizer/iterations": np.array(3, np.int64),
    "random/0/0000": np.array([1, 2], np.int64),
}


def write(folder, step, tensors=TENSORS):
    path = checkpoints.path_of(folder, step)
    checkpoints.write(path, tensors, dataclasses.replace(HEADER, step=step))
    return path


def test_what_is_written_is_read(tmp_path):
    path = write(tmp_path, 3)
    assert path.name == "step-0000003.safetensors"
    checkpoint = checkpoints.read(path)
    assert checkpoint.header == HEADER
    assert checkpoint.tensors.keys() == TENSORS.keys()
    for name, value in TENSORS.items():
        np.testing.assert_array_equal(checkpoint.tensors[name], value)
        assert checkpoint.tensors[name].dtype == value.dtype
        assert checkpoint.tensors[name].shape == value.shape
    assert checkpoint.under("weights").keys() == {"a"}
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_a_header_from_before_skipped_updates_were_counted_has_none():
    values = json.loads(dataclasses.replace(HEADER, num_skipped=3).to_json())
    assert Header.from_json(json.dumps(values)).num_skipped == 3
    del values["num_skipped"]
    assert Header.from_json(json.dumps(values)) == HEADER


@pytest.mark.parametrize("moment", ["save_file", "_flush", "replace"])
def test_a_failure_while_saving_leaves_the_previous_checkpoint(
    tmp_path, monkeypatch, moment
):
    folder = tmp_path / checkpoints.CHECKPOINTS
    path = write(folder, 3)
    before = path.read_bytes()

    def fail(*arguments, **keywords):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os if moment == "replace" else checkpoints, moment, fail)
    with pytest.raises(CheckpointError, match="No space left"):
        write(folder, 3, {"weights/a": np.zeros(2)})
    assert path.read_bytes() == before
    assert checkpoints.latest(tmp_path) == path
    assert os.listdir(folder) == [path.name]


def test_killed_while_saving_leaves_a_file_that_nobody_takes_for_a_checkpoint(
    tmp_path, monkeypatch
):
    folder = tmp_path / checkpoints.CHECKPOINTS
    path = write(folder, 3)

    def die(*arguments):
        raise KeyboardInterrupt  # not handled by write, as a SIGKILL would not be

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", die)
        with pytest.raises(KeyboardInterrupt):
            write(folder, 4)
    assert len(os.listdir(folder)) == 2
    assert checkpoints.latest(tmp_path) == path
    newest = write(folder, 5)
    assert sorted(os.listdir(folder)) == [path.name, newest.name]


@pytest.mark.parametrize("length", [0, 5, 100, -1])
def test_a_truncated_newest_checkpoint_is_skipped_by_name(tmp_path, caplog, length):
    folder = tmp_path / checkpoints.CHECKPOINTS
    older, newer = write(folder, 3), write(folder, 12)
    newer.write_bytes(newer.read_bytes()[:length])
    with caplog.at_level(logging.WARNING):
        assert checkpoints.latest(tmp_path) == older
    assert str(newer) in caplog.text
    with pytest.raises(CheckpointError, match="cannot read"):
        checkpoints.read(newer)


def test_a_foreign_safetensors_file_is_refused(tmp_path):
    path = tmp_path / "step-0000001.safetensors"
    safetensors.numpy.save_file({"a": np.zeros(2)}, path)
    with pytest.raises(CheckpointError, match="cannot use"):
        checkpoints.read(path)


def test_all_unknown_and_missing_header_keys_are_named():
    values = json.loads(HEADER.to_json())
    del values["dtype"], values["notes"]
    values.update(colour=1, shape=2)
    with pytest.raises(CheckpointError) as error:
        Header.from_json(json.dumps(values))
    for key in ("dtype", "notes", "colour", "shape"):
        assert key in str(error.value)


def test_a_later_format_is_refused():
    values = json.loads(HEADER.to_json()) | {"format_version": 2}
    with pytest.raises(CheckpointError, match="format 2"):
        Header.from_json(json.dumps(values))


def test_latest_is_by_number_and_prune_keeps_the_newest(tmp_path):
    folder = tmp_path / checkpoints.CHECKPOINTS
    paths = [write(folder, step) for step in (2, 9_999_999, 10_000_000, 30)]
    assert checkpoints.latest(tmp_path) == paths[2]
    checkpoints.prune(folder, 2)
    assert checkpoints.newest_first(folder) == [paths[2], paths[1]]


def test_find_prefers_the_best_of_a_run(tmp_path):
    with pytest.raises(CheckpointError, match="no checkpoint"):
        checkpoints.find(tmp_path)
    newest = write(tmp_path / checkpoints.CHECKPOINTS, 9)
    assert checkpoints.find(tmp_path) == newest
    assert checkpoints.find(tmp_path / checkpoints.CHECKPOINTS) == newest
    best = write(tmp_path / checkpoints.BEST, 4)
    assert checkpoints.find(tmp_path) == best
    assert checkpoints.find(newest) == newest

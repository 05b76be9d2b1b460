from __future__ import annotations

import hashlib

import numpy as np
import pytest
import yaml

from oseq.contracts import Position
from oseq.export.metadata import checksum, write_metadata
from oseq.training import checkpoint as checkpoints
from oseq.training.weights import assign, to_numpy, weights_of
from tests.unit.export import toy_model


@pytest.fixture
def data_layer(tmp_path):
    return toy_model.make_data_layer(tmp_path)


def test_the_checksum_is_of_names_and_values(data_layer):
    model = toy_model.make_model(data_layer)
    digest = hashlib.sha256()
    for path in sorted(weights_of(model)):
        digest.update(path.encode() + b"\0")
        value = to_numpy(weights_of(model)[path])
        digest.update(np.asarray(value, "<f4").tobytes())
    assert checksum(model) == digest.hexdigest()


def test_the_checksum_follows_every_weight(data_layer):
    model = toy_model.make_model(data_layer)
    before = checksum(model)
    assert checksum(toy_model.make_model(data_layer)) == before
    *_, weight = weights_of(model).values()
    assign(weight, to_numpy(weight) * 1.001)
    assert checksum(model) != before


def test_weights_of_other_precision_have_another_checksum(data_layer):
    models = [toy_model.make_model(data_layer, p) for p in ("float32", "bfloat16")]
    assert checksum(models[0]) != checksum(models[1])


def test_checkpoints_are_named_with_what_they_scored(data_layer, tmp_path):
    notes = {"metrics": {"BLEU": 31.5}, "metrics_step": 2}
    path = checkpoints.path_of(tmp_path / "run", 3)
    header = checkpoints.Header(
        step=3,
        position=Position(0, 0),
        notes=notes,
        source_vocab_size=8,
        target_vocab_size=8,
        vocabulary_fingerprint="",
        data={},
        dtype="mixed",
        oseq_version="0.1",
    )
    checkpoints.write(path, {"weights/a": np.zeros(1)}, header)
    write_metadata(
        tmp_path,
        export_format="made_up",
        details={},
        model=toy_model.make_model(data_layer),
        sources=[path],
        config="{}",
    )
    written = yaml.safe_load((tmp_path / "export.yaml").read_text())
    expected = {"file": str(path), "step": 3, "trained_in": "mixed", **notes}
    assert written["checkpoints"] == [expected]

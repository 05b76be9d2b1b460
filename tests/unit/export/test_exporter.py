"""What surrounds every format; the format itself is made up here."""

from __future__ import annotations

import logging

import pytest

from oseq.export import exporter
from oseq.export.export_error import ExportError
from oseq.export.formats import ExportFormat
from tests.unit.export import toy_model


def export(monkeypatch, folder, write, verify=lambda *_: None):
    (folder / "data").mkdir()
    data_layer = toy_model.make_data_layer(folder / "data")
    monkeypatch.setattr(exporter, "load_format", lambda *_: ExportFormat(write, verify))
    exporter.export(
        toy_model.make_model(data_layer),
        data_layer,
        folder / "export",
        export_format="made_up",
        quantization="float32",
        sample=data_layer,
        checkpoints=[],
        config="{}",
    )


def test_what_is_compared_is_complete_but_for_its_name(monkeypatch, tmp_path):
    seen = []

    def write(model, data_layer, folder):
        (folder / "weights").touch()
        return {}

    def verify(model, data_layer, folder, sample):
        seen.extend([folder.name, *sorted(path.name for path in folder.iterdir())])

    export(monkeypatch, tmp_path, write, verify)
    assert seen == ["export.partial", "export.yaml", "weights"]
    assert {path.name for path in tmp_path.iterdir()} == {"data", "export"}


def test_what_differs_is_removed(monkeypatch, tmp_path):
    def verify(*_):
        raise ExportError("differs")

    with pytest.raises(ExportError):
        export(monkeypatch, tmp_path, lambda *_: {}, verify)
    assert {path.name for path in tmp_path.iterdir()} == {"data"}


def test_no_line_of_the_log_comes_twice_later(monkeypatch, tmp_path):
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])

    def write(*_):
        logging.warning("gives a root logger without handlers one, as absl does")
        return {}

    export(monkeypatch, tmp_path, write)
    assert root.handlers == []

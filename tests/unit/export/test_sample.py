from __future__ import annotations

import pytest

from oseq.data.parallel_text_data_layer import ParallelTextDataLayer
from oseq.distributed.worker import SingleWorker
from oseq.export.sample import sample_of


@pytest.fixture
def data_layer(tmp_path):
    (tmp_path / "vocabulary.txt").write_text("a\nb\nc\n")
    params = {
        "src_vocab_file": str(tmp_path / "vocabulary.txt"),
        "special_tokens_already_in_vocab": False,
        "batch_size": 8,
    }
    return ParallelTextDataLayer(params, "infer", SingleWorker())


def lines_of(layer):
    return [layer.text_of("source", line) for line in range(layer.num_lines)]


def test_the_first_lines_that_are_not_blank_are_taken(data_layer, tmp_path):
    (tmp_path / "text").write_text("\na b\n \n" + "c\n" * 100)
    sample = sample_of(data_layer, [None, "nowhere", str(tmp_path / "text")], tmp_path)
    assert lines_of(sample) == ["a b", *["c"] * 31]


@pytest.mark.parametrize("sources", [[], [None], ["-"], ["nowhere", "blank"]])
def test_without_text_to_read_some_is_made_up(
    data_layer, tmp_path, monkeypatch, sources
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "blank").write_text("\n \n")
    lines = lines_of(sample_of(data_layer, sources, tmp_path))
    assert len(lines) == 32
    assert {word for line in lines for word in line.split(" ")} == {"a", "b", "c"}
    assert lines == lines_of(sample_of(data_layer, sources, tmp_path))

from __future__ import annotations

import functools
import io
import sys

import numpy as np
import pytest

from oseq.config.params import ConfigError
from oseq.data.text_files import DataError
from oseq.data.transformer_data_layer import TransformerDataLayer
from oseq.distributed.worker import SingleWorker
from tests.unit.data import data_layer_laws as laws
from tests.unit.data.data_layer_laws import OneOf, epoch_of, ids_in
from tests.unit.data.records import example, write_records
from tests.unit.data.subwords import SUBWORDS, ids_of, write_vocabulary

NUM_EXAMPLES = 30


@pytest.fixture
def folder(tmp_path):
    write_vocabulary(tmp_path / "vocab.ende")
    generator = np.random.default_rng(0)
    words = ids_of("a_", "b_", "c_", "d_", " ._")
    pairs = [
        example(generator.choice(words, n % 7 + 1), generator.choice(words, n % 5 + 1))
        for n in range(NUM_EXAMPLES)
    ]
    for shard in range(3):
        name = f"wmt32k-train-0000{shard + 1}-of-00003"
        write_records(tmp_path / name, pairs[shard::3])
    return tmp_path


def make(folder, mode="train", worker=None, **params):
    values = {
        "data_dir": str(folder),
        "file_pattern": "*train*",
        "src_vocab_file": str(folder / "vocab.ende"),
        "batch_tokens": 24,
        "seed": 1,
    }
    return TransformerDataLayer(values | params, mode, worker or SingleWorker())


@pytest.fixture
def maker(folder):
    return functools.partial(make, folder)


def layer_of(folder, pairs, mode="train", **params):
    records = [example(ids_of(*source), ids_of(*target)) for source, target in pairs]
    write_records(folder / "some-records", records)
    return make(folder, mode, file_pattern="some-*", **params)


def write(path, lines):
    path.write_bytes("".join(line + "\n" for line in lines).encode())
    return str(path)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_over_all_workers_every_example_comes_exactly_once(maker, size):
    laws.check_every_example_comes_once(maker, size, NUM_EXAMPLES)


@pytest.mark.parametrize("mode", ["eval", "infer", "score"])
def test_out_of_training_batches_are_those_of_one_worker(maker, mode):
    laws.check_batches_are_those_of_one_worker(maker, mode, 3)


def test_a_resumed_stream_goes_on_with_the_same_batches(maker):
    laws.check_a_resumed_stream_goes_on(maker)


def test_the_data_set_has_static_ranks_and_equals_the_batches(maker):
    laws.check_the_data_set_equals_the_batches(maker)


def test_every_row_is_its_text_again(folder, maker):
    laws.check_restoring_undoes_encoding(maker())
    lines = ["a b", "abca .b", "x_\\ y", "été", "1  2"]
    file = write(folder / "pairs.txt", lines)
    laws.check_restoring_undoes_encoding(maker(source_file=file, target_file=file))


def test_a_batch_holds_the_ids_of_the_records(folder):
    layer = layer_of(folder, [(["a_", "b_"], ["c_"]), (["d_"], ["ab", "c", "a_"])])
    (batch,) = layer.dataset().take(1)
    order = np.argsort(batch["id"])
    a, ab, b, c, d, plain_c = ids_of("a_", "ab", "b_", "c_", "d_", "c")
    source, target = batch["source"], batch["target"]
    assert source["ids"].numpy()[order].tolist() == [[a, b, 1], [d, 1, 0]]
    assert source["length"].numpy()[order].tolist() == [3, 2]
    assert target["ids"].numpy()[order].tolist() == [[c, 1, 0, 0], [ab, plain_c, a, 1]]
    assert target["length"].numpy()[order].tolist() == [2, 4]
    assert source["ids"].dtype == target["ids"].dtype == "int32"


def test_the_texts_of_a_record_are_restored_from_its_ids(folder):
    layer = layer_of(folder, [(["a_", " ._"], ["ab", "c", "a_", "b_"])], "eval")
    assert layer.text_of("source", 0) == "a ."
    assert layer.text_of("target", 0) == "abca b"
    assert layer.restore([*ids_of("ab", "c_"), 1, 0]) == "abc"


def test_decoders_begin_with_padding_as_the_vocabulary_has_no_start_symbol(maker):
    spec = maker().spec
    assert (spec.pad_id, spec.eos_id, spec.bos_id, spec.unk_id) == (0, 1, 0, -1)
    assert spec.source_vocab_size == spec.target_vocab_size == len(SUBWORDS)
    assert spec.joint_vocabulary


def test_two_vocabularies_are_told_apart(folder, maker):
    other = write_vocabulary(folder / "vocab.de", [*SUBWORDS, "x"])
    layer = maker(tgt_vocab_file=other)
    assert not layer.spec.joint_vocabulary
    assert layer.spec.target_vocab_size == len(SUBWORDS) + 1
    assert layer.fingerprint != maker().fingerprint == maker("eval").fingerprint
    assert layer.front_end_files() == {
        "src_vocab_file": str(folder / "vocab.ende"),
        "tgt_vocab_file": other,
    }


def test_over_long_and_empty_records_are_treated_as_lines_are(folder, caplog):
    a = ids_of("a_")
    pairs = [(["a_"] * n, ["b_"]) for n in (1, 2, 3, 0)]
    layer = layer_of(folder, pairs, max_length=3)
    assert ids_in(epoch_of(layer)) == [0, 1]
    assert "longer than max_length: 1 lines (line 3) dropped" in caplog.text
    assert "blank: 1 lines (line 4) dropped" in caplog.text
    layer = layer_of(folder, pairs, "eval", max_length=3)
    assert ids_in(layer.batches()) == [0, 1, 2, 3]
    layer = layer_of(folder, pairs, "infer", max_length=3)
    (batch,) = layer.batches()
    assert sorted(batch["source"]["length"].tolist()) == [2, 3, 3]
    assert [*a, *a, 1] in batch["source"]["ids"].tolist()
    assert layer.blank_ids.tolist() == [3] and layer.num_lines == 4


def test_infer_takes_raw_text_in_place_of_records(folder, maker):
    file = write(folder / "in.txt", [" abca b", "", "a  x"])
    layer = maker("infer", source_file=file)
    rows = {
        int(i): row[:length].tolist()
        for batch in layer.batches()
        for i, row, length in zip(
            batch["id"],
            batch["source"]["ids"],
            batch["source"]["length"],
            strict=True,
        )
    }
    assert rows == {
        0: [*ids_of("ab", "c", "a_", "b_"), 1],
        2: [*ids_of("a_", " ", " ", "_", *"\\120;", "_"), 1],
    }
    assert layer.num_lines == 3 and layer.blank_ids.tolist() == [1]
    assert layer.text_of("source", 0) == " abca b"


def test_lines_can_be_typed_and_standard_input_be_read(folder, maker, monkeypatch):
    typed = maker("infer", file_pattern=None).with_lines(["a b", " "])
    (batch,) = typed.batches()
    assert batch["source"]["ids"].tolist() == [[*ids_of("a_", "b_"), 1]]
    assert typed.text_of("source", 1) == " "
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"d\n")))
    layer = maker("infer", source_file="-")
    assert layer.text_of("source", 0) == "d"
    with pytest.raises(DataError, match="by one process, not by 2"):
        maker("infer", OneOf(0, 2), source_file="-")


def test_other_modes_take_pairs_of_raw_text(folder, maker):
    files = {
        "source_file": write(folder / "in.txt", ["a", "b c"]),
        "target_file": write(folder / "out.txt", ["c", " d  e "]),
    }
    for mode in ("train", "eval", "score"):
        layer = maker(mode, **files)
        assert layer.num_examples == 2
        assert layer.text_of("target", 1) == " d  e "


def test_prefixes_belong_to_the_lines_of_records(folder, maker):
    prefix = write(folder / "prefix.txt", ["a"])
    layer = layer_of(folder, [(["a_"], ["b_"])], "infer", prefix_file=prefix)
    (batch,) = layer.batches()
    assert batch["prefix"]["ids"].tolist() == [ids_of("a_")]
    with pytest.raises(DataError, match="1 lines, but the source has 30"):
        maker("infer", prefix_file=prefix)


def test_attention_belongs_to_subwords(folder):
    layer = layer_of(folder, [(["ab", "c", "a_", "d_"], ["a_"])], "eval")
    attention = np.eye(3, 6, dtype=np.float32)
    aligned = layer.align(0, ids_of("b_", "cab", "_"), attention)
    assert aligned.source == ["ab", "c", "a", " d"]
    assert aligned.target == ["b", " cab", ""]
    assert aligned.attention.tolist() == np.eye(3, 4).tolist()
    assert aligned.text == "b cab"


def test_lengths_and_vocabulary_are_padded_to_multiples_of_eight(maker):
    assert len(SUBWORDS) % 8
    spec = maker(pad_vocab_to_eight=True).spec
    assert spec.target_vocab_size == len(SUBWORDS) + -len(SUBWORDS) % 8
    for batch in epoch_of(maker(pad_data_to_eight=True)):
        assert batch["source"]["ids"].shape[1] == batch["target"]["ids"].shape[1] == 8


def test_a_damaged_record_is_named(folder, maker):
    file = folder / "wmt32k-train-00002-of-00003"
    file.write_bytes(file.read_bytes()[:-5])
    with pytest.raises(DataError, match="train-00002-of-00003, record 10: is cut off"):
        maker()


@pytest.mark.parametrize(
    "mode, params, message",
    [
        ("train", {"file_pattern": None}, "file_pattern: missing in train"),
        ("train", {"file_pattern": "*.x"}, r"\*.x: no such file"),
        ("infer", {"src_vocab_file": None}, "src_vocab_file: missing in infer"),
        ("score", {"source_file": "x"}, "target_file: missing in score"),
        ("eval", {"target_file": "x"}, "source_file: missing in eval"),
        ("eval", {"shuffle": True}, "shuffle: cannot be True in eval"),
        ("train", {"batch_tokens": None}, "batch_tokens or batch_size"),
        ("train", {"delimiter": " "}, "delimiter"),
        ("train", {"num_cpu_cores": 4}, "num_cpu_cores"),
        ("train", {"batch_in_tokens": True}, "batch_in_tokens"),
    ],
)
def test_values_that_do_not_fit_together_are_refused(maker, mode, params, message):
    with pytest.raises(ConfigError, match=message):
        maker(mode, **params)

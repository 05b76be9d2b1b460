from __future__ import annotations

import pytest
import tensorflow as tf

from oseq.data import token_cache
from oseq.data.record_files import RecordFiles
from oseq.data.subword_tokenizer import SubwordTokenizer
from oseq.data.text_files import DataError
from oseq.data.text_front_end import TextFrontEnd
from tests.unit.data.records import example, write_records
from tests.unit.data.subwords import ids_of, write_vocabulary

PAIRS = [
    (["a_", "b_"], ["c_"]),
    (["ab", "c", "a_"], ["a_", "b_"]),
    ([], ["a_"]),
    (["d_"], ["e_", "g_"]),
]


@pytest.fixture
def front_end(tmp_path):
    tokenizer = SubwordTokenizer(write_vocabulary(tmp_path / "vocab"))
    return TextFrontEnd(tokenizer, tokenizer, {})


def records_of(pairs):
    return [example(ids_of(*source), ids_of(*target)) for source, target in pairs]


def read(folder, front_end, mode="train", pattern="*train*", cache_dir=None):
    params = {"data_dir": str(folder), "file_pattern": pattern, "cache_dir": cache_dir}
    return RecordFiles(params, mode).read(front_end)


def rows_of(text):
    ranges = zip(text.offsets[:-1], text.offsets[1:], strict=True)
    return [text.ids[start:end].tolist() for start, end in ranges]


@pytest.mark.parametrize("mode", ["train", "eval", "score"])
def test_all_shards_are_one_text_in_the_order_of_their_names(tmp_path, front_end, mode):
    records = records_of(PAIRS)
    write_records(tmp_path / "train-00002-of-00002", records[3:])
    write_records(tmp_path / "train-00001-of-00002", records[:3])
    write_records(tmp_path / "dev-00001-of-00001", records)
    source, target = read(tmp_path, front_end, mode)
    assert rows_of(source) == [ids_of(*of_source) for of_source, _ in PAIRS]
    assert rows_of(target) == [ids_of(*of_target) for _, of_target in PAIRS]
    assert [source.line(i) for i in range(4)] == ["a b", "abca", "", "d"]
    assert target.line(3) == "e g"
    assert source.unknown == {}


def test_infer_reads_sources_alone(tmp_path, front_end):
    write_records(tmp_path / "test", records_of(PAIRS))
    source, target = read(tmp_path, front_end, "infer", "test")
    assert len(source) == 4 and target is None
    assert not (tmp_path / ".oseq_cache").exists()


def test_records_are_parsed_once_and_then_mapped(tmp_path, front_end, monkeypatch):
    file = tmp_path / "train"
    write_records(file, records_of(PAIRS))
    source, _ = read(tmp_path, front_end)
    monkeypatch.setattr(tf.io, "parse_example", None)  # must not be needed
    again, target = read(tmp_path, front_end)
    assert rows_of(again) == rows_of(source) != rows_of(target)
    assert again.line(1) == "abca"
    monkeypatch.undo()
    write_records(file, records_of(PAIRS[:1]))
    assert len(read(tmp_path, front_end)[0]) == 1


def test_a_damaged_cache_is_read_anew(tmp_path, front_end):
    write_records(tmp_path / "train", records_of(PAIRS))
    source, _ = read(tmp_path, front_end, cache_dir=str(tmp_path / "cache"))
    expected = rows_of(source)
    for file in (tmp_path / "cache").glob("*/ids.bin"):
        file.write_bytes(b"")
    again, _ = read(tmp_path, front_end, cache_dir=str(tmp_path / "cache"))
    assert rows_of(again) == expected


def test_many_records_come_in_blocks(tmp_path, front_end, monkeypatch):
    monkeypatch.setattr("oseq.data.record_files._RECORDS_AT_ONCE", 3)
    write_records(tmp_path / "train", records_of(PAIRS) * 3)
    for mode in ("train", "score"):
        source, target = read(tmp_path, front_end, mode)
        assert len(source) == len(target) == 12
        assert rows_of(source)[4:8] == [ids_of(*of_source) for of_source, _ in PAIRS]


def test_an_empty_shard_is_passed_over(tmp_path, front_end):
    write_records(tmp_path / "train-1", records_of(PAIRS))
    (tmp_path / "train-2").write_bytes(b"")
    assert len(read(tmp_path, front_end)[0]) == 4
    (tmp_path / "train-1").write_bytes(b"")
    with pytest.raises(DataError, match="all files are empty"):
        read(tmp_path, front_end)


def test_a_glob_that_matches_nothing_is_named(tmp_path, front_end):
    with pytest.raises(DataError, match=r"file_pattern: .*/\*train\*: no such file"):
        read(tmp_path, front_end)


def test_the_record_that_is_cut_off_is_named(tmp_path, front_end):
    file = tmp_path / "train"
    write_records(file, records_of(PAIRS))
    file.write_bytes(file.read_bytes()[:-3])
    with pytest.raises(DataError, match="train, record 4: is cut off or damaged"):
        read(tmp_path, front_end)
    assert not list((tmp_path / ".oseq_cache").glob("*"))


def test_the_record_whose_bytes_have_changed_is_named(tmp_path, front_end):
    file = tmp_path / "train"
    write_records(file, records_of(PAIRS))
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    with pytest.raises(DataError, match="train, record [23]: is cut off or damaged"):
        read(tmp_path, front_end)


def test_a_file_of_something_else_is_named(tmp_path, front_end):
    (tmp_path / "train.txt").write_text("This is some text, not a file of records.\n")
    with pytest.raises(DataError, match="train.txt, record 1: is cut off or damaged"):
        read(tmp_path, front_end)


def test_records_of_other_features_are_named(tmp_path, front_end):
    floats = tf.train.Feature(float_list=tf.train.FloatList(value=[1.0]))
    strange = {
        b"no example": "record 2: is no tf.train.Example whose 'inputs' are int64",
        tf.train.Example(
            features=tf.train.Features(feature={"inputs": floats})
        ).SerializeToString(): "record 2: is no tf.train.Example whose 'inputs'",
        tf.train.Example().SerializeToString(): "record 2: has no 'inputs'",
    }
    for record, message in strange.items():
        write_records(tmp_path / "train", [*records_of(PAIRS[:1]), record])
        with pytest.raises(DataError, match=message):
            read(tmp_path, front_end)


@pytest.mark.parametrize(
    "ids, what",
    [
        ([4, 5], "there is 5 at place 2"),  # no EOS
        ([4, 1, 5, 1], "there is 1 at place 2"),
        ([4, 0, 1], "there is 0 at place 2"),
        ([4, 999, 1], "there is 999 at place 2"),
        ([-1, 4, 1], "there is -1 at place 1"),
        ([4, 5, 1, 0], "there is 1 at place 3"),
    ],
)
def test_records_of_another_vocabulary_are_named(tmp_path, front_end, ids, what):
    records = records_of(PAIRS)
    write_records(tmp_path / "train-1", records)
    broken = example([4], ids, end=[1], target_end=[])
    write_records(tmp_path / "train-2", [*records[:2], broken, *records])
    size = front_end.spec.target_vocab_size
    message = rf"train-2, record 3: 'targets' are not ids .*\(2 to {size - 1}\).*{what}"
    with pytest.raises(DataError, match=message):
        read(tmp_path, front_end)


def test_both_sides_have_caches_of_their_own(tmp_path, front_end):
    file = str(tmp_path / "train")
    write_records(tmp_path / "train", records_of(PAIRS))
    keys = {
        token_cache.cache_key([file], front_end.source, part)
        for part in ("", "inputs", "targets")
    }
    assert len(keys) == 3

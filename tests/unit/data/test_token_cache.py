from __future__ import annotations

import json
import os
import threading

import numpy as np
import pytest

from oseq.data import token_cache
from oseq.data.delimited_tokenizer import DelimitedTokenizer
from oseq.data.text_files import DataError
from oseq.data.token_cache import load_or_tokenize

LINES = ["a b", "", "b \u2028 x", "\u3000", "a\rx", "b"]
IDS = [[4, 5], [], [5, 3, 3], [], [3], [5]]


@pytest.fixture
def tokenizer(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text("a\nb\n")
    return DelimitedTokenizer(str(path), special_tokens_already_in_vocab=False)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "text.en"
    path.write_bytes("\n".join(LINES).encode())
    return str(path)


@pytest.fixture
def cache_dir(tmp_path):
    return str(tmp_path / "cache")


def ids_of(text):
    ranges = zip(text.offsets[:-1], text.offsets[1:], strict=True)
    return [text.ids[start:end].tolist() for start, end in ranges]


def assert_is_whole(text):
    assert ids_of(text) == IDS
    assert [text.line(i) for i in range(len(text))] == LINES
    assert text.unknown == {"\u2028": 1, "x": 1, "a\rx": 1}


def test_a_corpus_is_tokenized_once_and_then_mapped(
    file, tokenizer, cache_dir, monkeypatch
):
    assert_is_whole(load_or_tokenize([file], tokenizer, cache_dir))
    monkeypatch.setattr(token_cache, "tokenize", None)  # must not be needed
    text = load_or_tokenize([file], tokenizer, cache_dir)
    assert_is_whole(text)
    assert isinstance(text.ids, np.memmap) and text.ids.dtype == np.uint16


def test_several_files_follow_each_other(file, tokenizer, cache_dir):
    text = load_or_tokenize([file, file], tokenizer, cache_dir)
    assert ids_of(text) == IDS * 2
    assert [text.line(i) for i in range(len(text))] == LINES * 2


def test_a_changed_file_or_vocabulary_gets_another_cache(
    file, tokenizer, cache_dir, tmp_path
):
    load_or_tokenize([file], tokenizer, cache_dir)
    (tmp_path / "vocab.txt").write_text("b\na\n")
    other = DelimitedTokenizer(str(tmp_path / "vocab.txt"), " ", False)
    assert ids_of(load_or_tokenize([file], other, cache_dir))[0] == [5, 4]
    with open(file, "w") as stream:
        stream.write("b b\n")
    assert ids_of(load_or_tokenize([file], tokenizer, cache_dir)) == [[5, 5]]


def damage_size(path):
    with open(path, "r+b") as stream:
        stream.truncate(os.path.getsize(path) - 1)


def damage_content(path):
    with open(path, "r+b") as stream:
        stream.write(b"\xff\xfe")


@pytest.mark.parametrize("damage", [damage_size, damage_content, os.remove])
@pytest.mark.parametrize(
    "name", ["ids.bin", "offsets.bin", "text_offsets.bin", "header.json"]
)
def test_a_damaged_cache_is_rebuilt(file, tokenizer, cache_dir, name, damage):
    load_or_tokenize([file], tokenizer, cache_dir)
    (folder,) = os.listdir(cache_dir)
    damage(os.path.join(cache_dir, folder, name))
    assert_is_whole(load_or_tokenize([file], tokenizer, cache_dir))
    assert os.listdir(cache_dir) == [folder]


@pytest.mark.parametrize(
    "change",
    [
        {"counts": {}},
        {"counts": {"ids": -1, "offsets": 0, "text": 0, "text_offsets": 0}},
        {"dtypes": {"ids": "object"}},
        {"unknown": 3},
    ],
)
def test_a_header_that_lies_is_not_believed(file, tokenizer, cache_dir, change):
    load_or_tokenize([file], tokenizer, cache_dir)
    (folder,) = os.listdir(cache_dir)
    path = os.path.join(cache_dir, folder, "header.json")
    with open(path) as stream:
        header = json.load(stream)
    with open(path, "w") as stream:
        json.dump(header | change, stream)
    assert_is_whole(load_or_tokenize([file], tokenizer, cache_dir))


def test_sides_of_different_length_are_not_believed(file, tokenizer, cache_dir):
    text = load_or_tokenize([file], tokenizer, cache_dir)
    (folder,) = os.listdir(cache_dir)
    folder = os.path.join(cache_dir, folder)
    with open(os.path.join(folder, "header.json")) as stream:
        header = json.load(stream)
    header["counts"]["offsets"] = 2  # as if all were one line
    np.array([0, len(text.ids)]).tofile(os.path.join(folder, "offsets.bin"))
    with open(os.path.join(folder, "header.json"), "w") as stream:
        json.dump(header, stream)
    assert_is_whole(load_or_tokenize([file], tokenizer, cache_dir))


def test_writers_at_the_same_time_do_not_disturb_each_other(file, tokenizer, cache_dir):
    texts = []
    threads = [
        threading.Thread(
            target=lambda: texts.append(load_or_tokenize([file], tokenizer, cache_dir))
        )
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(texts) == 8
    for text in texts:
        assert_is_whole(text)
    assert len(os.listdir(cache_dir)) == 1


def test_a_failure_leaves_no_half_cache(tmp_path, tokenizer, cache_dir):
    path = tmp_path / "bad.txt"
    path.write_bytes(b"a\n\xff\n")
    with pytest.raises(DataError, match="bad.txt, line 2"):
        load_or_tokenize([str(path)], tokenizer, cache_dir)
    assert os.listdir(cache_dir) == []


def test_the_cache_lies_by_the_text_or_with_the_user(file, tmp_path, monkeypatch):
    assert token_cache.default_cache_dir(file) == str(tmp_path / ".oseq_cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    folder = tmp_path / "read_only"
    folder.mkdir()
    folder.chmod(0o555)
    place = token_cache.default_cache_dir(str(folder / "text.en"))
    assert place == str(tmp_path / "user" / "oseq")

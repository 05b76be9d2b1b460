from __future__ import annotations

import bz2
import gzip
import io

import pytest

from oseq.data import text_files
from oseq.data.text_files import (
    DataError,
    blocks_of_stream,
    find_files,
    is_blank,
    read_blocks,
)


def lines_of(content: bytes) -> list[str]:
    return [
        line for block in blocks_of_stream(io.BytesIO(content), "f") for line in block
    ]


@pytest.mark.parametrize(
    "separator",
    ["\r", "\u2028", "\u2029", "\u0085", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e"],
)
def test_only_a_newline_ends_a_line(separator):
    line = f"a{separator}b"
    assert lines_of(f"{line}\nc\n".encode()) == [line, "c"]


def test_a_carriage_return_before_the_newline_is_dropped_and_no_other():
    assert lines_of(b"a\r\nb\rc\r\r\nd\r\n") == ["a", "b\rc\r", "d"]


def test_a_missing_final_newline_changes_nothing():
    assert lines_of(b"a\nb") == lines_of(b"a\nb\n") == ["a", "b"]
    assert lines_of(b"a\n\n") == ["a", ""]


def test_a_byte_order_mark_at_the_start_is_dropped():
    assert lines_of(b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n") == ["a", "\ufeffb"]
    assert lines_of(b"\xef\xbb\xbf") == []


@pytest.mark.parametrize("size", range(1, 12))
def test_lines_do_not_depend_on_the_size_of_blocks(monkeypatch, size):
    monkeypatch.setattr(text_files, "_BLOCK_BYTES", size)
    assert lines_of("ä\r\n\n€uro\r\nz".encode()) == ["ä", "", "€uro", "z"]


def test_invalid_utf8_is_an_error_with_file_and_line(monkeypatch):
    monkeypatch.setattr(text_files, "_BLOCK_BYTES", 4)
    with pytest.raises(DataError, match="f, line 3: is not valid UTF-8.*0xff"):
        lines_of(b"abcdef\nb\nc\xff\n")


def test_a_nul_byte_is_an_error_with_file_and_line():
    with pytest.raises(DataError, match="f, line 2: holds a NUL"):
        lines_of(b"a\nb\0\n")


@pytest.mark.parametrize("suffix, opener", [(".gz", gzip.open), (".bz2", bz2.open)])
def test_compressed_files_read_like_plain_ones(tmp_path, suffix, opener):
    path = str(tmp_path / f"text{suffix}")
    with opener(path, "wb") as stream:
        stream.write(b"a\nb\n")
    assert list(read_blocks(path)) == [["a", "b"]]


@pytest.mark.parametrize("suffix", [".gz", ".bz2"])
def test_a_broken_archive_is_an_error_with_its_name(tmp_path, suffix):
    path = tmp_path / f"text{suffix}"
    path.write_bytes(b"this is no archive")
    with pytest.raises(DataError, match=f"text{suffix}: cannot be read"):
        list(read_blocks(str(path)))


def test_a_truncated_archive_is_an_error(tmp_path):
    path = tmp_path / "text.gz"
    path.write_bytes(gzip.compress(b"a\n" * 9999)[:-9])
    with pytest.raises(DataError, match="cannot be read"):
        list(read_blocks(str(path)))


def test_globs_are_sorted_and_names_keep_their_order(tmp_path):
    for name in ("b.1", "b.0", "a", "c[1]"):
        (tmp_path / name).write_text("x\n")
    found = find_files([str(tmp_path / name) for name in ("b.*", "a", "c[1]")])
    assert [path.rpartition("/")[2] for path in found] == ["b.0", "b.1", "a", "c[1]"]


def test_all_missing_and_empty_files_are_named_at_once(tmp_path):
    (tmp_path / "empty").touch()
    with pytest.raises(DataError) as error:
        find_files([str(tmp_path / n) for n in ("none", "empty", "*.no")] + ["/"])
    problems = error.value.problems
    assert len(problems) == 4
    assert "no such file" in problems[0] and "is empty" in problems[1]


@pytest.mark.parametrize("line", ["", " ", "\t", "\u00a0", "\u3000", "\ufeff \u200b"])
def test_lines_without_ink_are_blank(line):
    assert is_blank(line)
    assert not is_blank(line + "." + line)

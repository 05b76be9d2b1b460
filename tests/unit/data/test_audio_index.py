from __future__ import annotations

import os

import numpy as np
import pytest

from oseq.data import audio_index
from oseq.data.audio_files import AudioHeader
from oseq.data.audio_index import index_audio
from oseq.data.speech_manifest import plain_list
from oseq.data.text_files import DataError
from tests.unit.data.audio import NO_AUDIO, tone, write_audio


@pytest.fixture
def folder(tmp_path):
    write_audio(tmp_path / "a.wav", tone(0.5))
    write_audio(tmp_path / "b.flac", tone(0.25, 8000), 8000)
    (tmp_path / "text.wav").write_bytes(NO_AUDIO)
    return tmp_path


def utterances(folder, *names):
    return plain_list(names, "list", str(folder))


def read_by(monkeypatch):
    """Returns a list that grows by every header that is read."""
    read, original = [], audio_index.read_header

    def read_header(path):
        read.append(os.path.basename(path))
        return original(path)

    monkeypatch.setattr(audio_index, "read_header", read_header)
    return read


def test_headers_and_problems_belong_to_utterances(folder):
    index = index_audio(
        utterances(folder, "a.wav", "text.wav", "gone.wav", "b.flac", "a.wav", "")
    )
    assert index.rows.tolist() == [0, 1, 2, 3, 0, 4]
    assert index.header(3) == AudioHeader(8000, 2000)
    assert index.header(4) == AudioHeader(16000, 8000)
    assert index.problem(0) is None
    assert "cannot be read as audio" in index.problem(1)
    assert index.problem(2).endswith("gone.wav: no such file")
    assert index.is_missing.tolist() == [False, False, True, False, True]


def test_each_file_is_read_once(folder, monkeypatch):
    read = read_by(monkeypatch)
    index_audio(utterances(folder, *["a.wav", "b.flac"] * 5))
    assert sorted(read) == ["a.wav", "b.flac"]


def test_names_are_looked_up_by_the_manifest_then_in_the_working_directory(
    folder, monkeypatch
):
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder)
    index = index_audio(utterances(folder / "elsewhere", "a.wav"))
    assert index.path(0) == "a.wav"
    write_audio(folder / "elsewhere" / "a.wav", tone(0.1))
    index = index_audio(utterances(folder / "elsewhere", "a.wav"))
    assert index.path(0) == str(folder / "elsewhere" / "a.wav")
    absolute = index_audio(utterances(folder / "elsewhere", str(folder / "b.flac")))
    assert absolute.header(0).num_samples == 2000


def test_a_second_start_reads_no_headers_until_a_file_changes(folder, monkeypatch):
    read = read_by(monkeypatch)
    cache = str(folder / "cache")
    listed = utterances(folder, "a.wav", "text.wav", "b.flac")
    first = index_audio(listed, cache)
    assert len(read) == 3
    second = index_audio(listed, cache)
    assert read[3:] == ["text.wav"]  # what has a problem is looked at again
    np.testing.assert_array_equal(second.headers, first.headers)
    assert second.problems == first.problems and len(first.problems) == 1
    assert second.fingerprint == first.fingerprint

    write_audio(folder / "text.wav", tone(0.1))
    third = index_audio(listed, cache)
    assert len(read) == 7 and not third.problems
    assert third.fingerprint != first.fingerprint


def test_a_problem_that_is_gone_is_forgotten(folder, monkeypatch):
    """A file that could not be opened may change neither its size nor its time."""
    listed, cache = utterances(folder, "a.wav", "b.flac"), str(folder / "cache")

    def denied(path):
        raise DataError(f"{path}: permission denied")

    with monkeypatch.context() as patched:
        patched.setattr(audio_index, "read_header", denied)
        assert len(index_audio(listed, cache).problems) == 2
    index = index_audio(listed, cache)
    assert not index.problems and index.header(0).num_samples == 8000


def test_problems_name_files_as_they_are_called_now(folder, monkeypatch):
    cache = str(folder / "cache")
    index_audio(utterances(folder, "a.wav", "text.wav"), cache)
    monkeypatch.chdir(folder)
    index = index_audio(utterances("", "a.wav", "text.wav"), cache)
    assert index.problem(1).startswith("text.wav: cannot be read")


def test_threads_do_not_run_far_ahead_of_who_takes_their_results():
    started = []
    results = audio_index.map_threads(started.append, range(1000), "testing")
    for _ in range(10):
        next(results)
    assert 10 <= len(started) <= 10 + 2 * audio_index._PARTS_AHEAD
    assert len(list(results)) == 990
    assert sorted(started) == list(range(1000))


@pytest.mark.parametrize("content", [b"", b"nonsense", b"PK\x03\x04 a part of it"])
def test_a_damaged_cache_is_rebuilt(folder, caplog, content):
    cache = folder / "cache"
    listed = utterances(folder, "a.wav")
    index_audio(listed, str(cache))
    (file,) = cache.iterdir()
    file.write_bytes(content)
    assert index_audio(listed, str(cache)).header(0).num_samples == 8000
    assert "damaged cache is rebuilt" in caplog.text
    caplog.clear()
    index_audio(listed, str(cache))
    assert not caplog.text

"""How the operations in C++ are compiled, kept, shared and done without."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys

import pytest

from oseq.native import library

LOAD = "from oseq.native import library; print(library.load() is not None)"


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """An empty directory for what is compiled."""
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv(library.PLACE_VARIABLE, str(tmp_path / "native"))
    return tmp_path / "native"


def load():
    return library.load.__wrapped__()


def make_compiler(tmp_path, monkeypatch, script):
    compiler = tmp_path / "compiler"
    compiler.write_text(f"#!/bin/sh\n{script}\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    return compiler


def test_off_means_without_a_word(monkeypatch, caplog):
    monkeypatch.setenv(library.PLACE_VARIABLE, library.OFF)

    assert load() is None
    assert not caplog.records


def test_without_a_compiler_it_is_named(monkeypatch, caplog):
    monkeypatch.setenv("CXX", "no-such-compiler")

    assert load() is None
    assert "there is no no-such-compiler; install it, or set CXX" in caplog.text


def test_what_a_compiler_has_to_say_is_shown(tmp_path, monkeypatch, place, caplog):
    script = "printf 'no such header \\377' >&2; exit 3"
    make_compiler(tmp_path, monkeypatch, script)

    assert load() is None
    assert "ended with code 3:\nno such header" in caplog.text
    assert not list(place.glob("*.so"))


@pytest.mark.parametrize("value", ['"unbalanced', "/dev/null"])
def test_a_compiler_that_cannot_be_run_ends_nothing(value, monkeypatch, caplog):
    monkeypatch.setenv("CXX", value)

    assert load() is None
    assert "oseq's own operations are missing" in caplog.text


def test_without_locks_it_is_compiled_all_the_same(
    monkeypatch, tmp_path, place, caplog
):
    def refuse(*_):
        raise OSError("no locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    script = 'while [ "$1" != -o ]; do shift; done; echo made > "$2"'
    make_compiler(tmp_path, monkeypatch, script)
    load()

    assert len(list(place.glob("*.so"))) == 1


def test_a_place_may_be_relative(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(library.PLACE_VARIABLE, ".")

    assert library._place() == tmp_path


def test_a_compiler_may_come_with_options(tmp_path, monkeypatch, caplog):
    compiler = make_compiler(tmp_path, monkeypatch, 'echo "got $1" >&2; exit 1')
    monkeypatch.setenv("CXX", f"{compiler} --first")

    assert load() is None
    assert "got --first" in caplog.text


def test_a_place_that_cannot_be_written_is_named(place, caplog):
    place.write_text("a file")

    assert load() is None
    assert str(place) in caplog.text
    assert library.PLACE_VARIABLE in caplog.text


def test_a_file_that_is_no_library_is_named(tmp_path, monkeypatch, caplog):
    script = 'while [ "$1" != -o ]; do shift; done; echo damaged > "$2"'
    make_compiler(tmp_path, monkeypatch, script)

    assert load() is None
    assert ".so" in caplog.text


def test_processes_that_start_together_compile_once_and_later_ones_never(
    tmp_path, monkeypatch, place
):
    """What a real compiler made stands in for one, for it takes long."""
    monkeypatch.delenv(library.PLACE_VARIABLE)
    made = library._library()
    monkeypatch.setenv(library.PLACE_VARIABLE, str(place))
    script = f"""
echo called >> {tmp_path}/calls
sleep 1
while [ "$1" != -o ]; do shift; done
cp {made} "$2"
"""
    make_compiler(tmp_path, monkeypatch, script)

    for number_of_processes in (2, 1):
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", LOAD], stdout=subprocess.PIPE, env=os.environ
            )
            for _ in range(number_of_processes)
        ]
        for process in processes:
            assert process.communicate()[0].split()[-1] == b"True"

    assert (tmp_path / "calls").read_text() == "called\n"

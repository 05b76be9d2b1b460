from __future__ import annotations

from pathlib import Path

import pytest

from oseq.compat.recognize import is_old_config

REPOSITORY = Path(__file__).resolve().parents[3]


def is_old(folder: Path, text: str) -> bool:
    file = folder / "config.py"
    file.write_text(text)
    return is_old_config(file)


@pytest.mark.parametrize(
    "text",
    [
        "from open_seq2seq.models import Text2Text",
        "import open_seq2seq.data",
        "def f():\n    from open_seq2seq import models",
        "base_params = {'dtype': tf.float32}",  # OpenSeq2Seq hands tf in
    ],
)
def test_an_old_file_is_known_by_what_it_imports_and_uses(tmp_path, text):
    assert is_old(tmp_path, text)


@pytest.mark.parametrize(
    "text",
    [
        "import tensorflow as tf\nx = tf.float32",
        "from oseq.models import Text2Text",
        "tf = 1\nx = tf",
        "def f(tf):\n    return tf.float32",
        "# open_seq2seq",
        "print 'Python 2'\nfrom open_seq2seq import models",  # the loader says why
    ],
)
def test_other_files_are_not(tmp_path, text):
    assert not is_old(tmp_path, text)


def test_a_file_beside_it_may_do_the_import(tmp_path):
    (tmp_path / "common.py").write_text("import config\nimport open_seq2seq")

    assert is_old(tmp_path, "from common import base_params")


def test_neither_yaml_nor_missing_files_are_old(tmp_path):
    (tmp_path / "config.yaml").write_text("base_model: open_seq2seq.models.Text2Text")

    assert not is_old_config(tmp_path / "config.yaml")
    assert not is_old_config(tmp_path / "missing.py")


@pytest.mark.parametrize(
    "example", sorted(REPOSITORY.glob("example_configs/**/*.py")), ids=lambda p: p.name
)
def test_oseqs_own_examples_are_not_old(example):
    assert not is_old_config(example)

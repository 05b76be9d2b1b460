"""A small corpus in the working directory, and one model that was trained on it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

pytest.register_assert_rewrite("tests.integration.toy")

from tests.integration import toy  # noqa: E402


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    toy.write_corpus(folder)
    return folder


@pytest.fixture
def workplace(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a copy of the corpus where the example expects it."""
    shutil.copytree(corpus, tmp_path / "data" / "toy-reversal")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def _trained(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The logdir of a tiny model after 30 updates, which nobody changes."""
    place = tmp_path_factory.mktemp("trained")
    shutil.copytree(corpus, place / "data" / "toy-reversal")
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.chdir(place)
        toy.succeed(
            *toy.TINY,
            "--logdir=run",
            "--max_steps=30",
            "--save_checkpoint_steps=10",
            "--lr_policy_params/warmup_steps=5",
        )
    return place / "run"


@pytest.fixture
def run(_trained: Path, workplace: Path) -> Path:
    """A copy of the tiny model's logdir as ``run`` in the working directory."""
    return Path(shutil.copytree(_trained, workplace / "run"))

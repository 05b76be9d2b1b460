from __future__ import annotations

import logging
import subprocess

import pytest

import oseq
from oseq.config.run_record import start_run_record


@pytest.fixture(autouse=True)
def _restored_handlers():
    logger = logging.getLogger("oseq")
    handlers, level = list(logger.handlers), logger.level
    yield
    for handler in set(logger.handlers) - set(handlers):
        handler.close()
    logger.handlers = handlers
    logger.setLevel(level)


@pytest.fixture
def config_path(tmp_path):
    path = tmp_path / "experiment" / "config.py"
    path.parent.mkdir()
    path.write_text("x = 1\n")
    return path


def test_command_config_and_versions_are_kept(tmp_path, config_path):
    record = start_run_record(tmp_path / "run", config_path, "oseq --mode=train")
    assert record.parent == tmp_path / "run" / "logs"
    assert (record / "command.txt").read_text() == "oseq --mode=train\n"
    assert (record / "config.py").read_text() == "x = 1\n"
    versions = (record / "versions.txt").read_text()
    assert f"oseq {oseq.__version__}\n" in versions
    assert "tensorflow 2." in versions


def test_the_log_goes_into_the_record(tmp_path, config_path):
    record = start_run_record(tmp_path / "run", config_path, "")
    logging.getLogger("oseq.training").warning("loss is %d", 3)
    assert "WARNING loss is 3" in (record / "log.txt").read_text()


def test_git_revision_and_difference_are_kept(tmp_path, config_path):
    def git(*arguments):
        identity = ("-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run(
            ["git", "-C", str(config_path.parent), *identity, *arguments], check=True
        )

    git("init", "-q")
    git("add", "config.py")
    git("commit", "-q", "-m", "first")
    config_path.write_text("x = 2\n")
    record = start_run_record(tmp_path / "run", config_path, "")
    assert len((record / "git-revision.txt").read_text().strip()) == 40
    assert "+x = 2" in (record / "git-diff.txt").read_text()


def test_without_a_repository_or_git_the_rest_is_kept(
    tmp_path, config_path, monkeypatch
):
    record = start_run_record(tmp_path / "run", config_path, "")
    assert not (record / "git-diff.txt").exists()
    monkeypatch.setenv("PATH", "")
    record = start_run_record(tmp_path / "run", config_path, "")
    assert (record / "config.py").exists()


def test_two_records_of_one_second_are_kept_apart(tmp_path, config_path):
    first = start_run_record(tmp_path, config_path, "first")
    second = start_run_record(tmp_path, config_path, "second")
    assert first != second
    assert (first / "command.txt").read_text() == "first\n"

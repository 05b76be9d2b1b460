"""The wheel: what it holds, what it leaves out, and that its command starts."""

from __future__ import annotations

import configparser
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
SOURCES = ("oseq", "tests", "example_configs", "docs")
FILES = ("setup.cfg", "pyproject.toml", "README.md", "LICENSE", "run.py")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of a copy of the sources, so that no stale build directory gets in."""
    directory = tmp_path_factory.mktemp("packaging")
    checkout = directory / "checkout"
    for name in SOURCES:
        shutil.copytree(
            REPOSITORY / name,
            checkout / name,
            ignore=shutil.ignore_patterns("__pycache__"),
        )
    for name in FILES:
        shutil.copy(REPOSITORY / name, checkout)
    (checkout / "data").mkdir()
    (checkout / "data" / "train.en").write_text("a line\n")
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
        + ["--no-build-isolation", "--wheel-dir", directory / "wheels", checkout],
        check=True,
    )
    (built,) = (directory / "wheels").glob("oseq-*.whl")
    return built


def test_wheel_holds_every_module_of_oseq_and_nothing_else(wheel: Path) -> None:
    checkout = wheel.parents[1] / "checkout"
    sources = {str(f.relative_to(checkout)) for f in (checkout / "oseq").rglob("*.py")}

    names = zipfile.ZipFile(wheel).namelist()

    assert {name for name in names if ".dist-info/" not in name} == sources
    assert any(name.endswith("LICENSE") for name in names)


def test_wheel_declares_the_oseq_command(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (file,) = (name for name in archive.namelist() if name.endswith("entry_points.txt"))
    entry_points = configparser.ConfigParser()
    entry_points.read_string(archive.read(file).decode())

    assert entry_points["console_scripts"]["oseq"] == "oseq.cli:main"


def test_installed_command_shows_its_help(wheel: Path, tmp_path: Path) -> None:
    # The dependencies are this environment's: installing TensorFlow takes minutes.
    environment = tmp_path / "environment"
    venv.create(environment, with_pip=True)
    python = environment / "bin" / "python"
    subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--no-deps", wheel], check=True
    )
    (packages,) = environment.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")

    result = subprocess.run(
        [environment / "bin" / "oseq", "--help"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )

    assert result.returncode == 0, result.stderr
    assert "--config_file" in result.stdout

"""What the Dockerfiles say of the rest of the repository is true.

They are not built here: that needs an engine and a registry of images.
"""

from __future__ import annotations

import configparser
import json
import os
import re
import shlex
import subprocess
from fnmatch import fnmatch
from pathlib import Path

import pytest
import tensorflow as tf

REPOSITORY = Path(__file__).resolve().parents[2]
DOCKERFILES = [REPOSITORY / "docker" / f"Dockerfile.{kind}" for kind in ("cpu", "gpu")]

every_dockerfile = pytest.mark.parametrize(
    "dockerfile", DOCKERFILES, ids=lambda file: file.name
)


def _instructions(dockerfile: Path) -> list[tuple[str, str]]:
    """Returns (instruction, arguments) in order, continued lines joined."""
    lines = [
        line
        for line in dockerfile.read_text().splitlines()
        if not line.lstrip().startswith("#")
    ]
    joined = "\n".join(lines).replace("\\\n", " ").splitlines()
    pairs = [line.split(maxsplit=1) for line in joined if line.strip()]
    return [(name, arguments) for name, arguments in pairs]


def _arguments(dockerfile: Path, instruction: str) -> list[str]:
    return [text for name, text in _instructions(dockerfile) if name == instruction]


def _stages(dockerfile: Path) -> dict[str, str]:
    """Returns the images that the stages begin with, by name; "" for the last one."""
    return {
        name: image
        for image, _, name in (
            text.partition(" AS ") for text in _arguments(dockerfile, "FROM")
        )
    }


def _setup() -> configparser.ConfigParser:
    setup = configparser.ConfigParser()
    setup.read(REPOSITORY / "setup.cfg")
    return setup


@every_dockerfile
def test_copied_files_are_in_the_build_context(dockerfile: Path) -> None:
    ignored = [
        line
        for line in (REPOSITORY / ".dockerignore").read_text().splitlines()
        if line and not line.startswith("#")
    ]
    copies = [shlex.split(text) for text in _arguments(dockerfile, "COPY")]
    sources = [
        source
        for *words, _ in copies
        if not words[0].startswith("--from=")
        for source in words
    ]

    assert sources
    assert [each for each in sources if not (REPOSITORY / each).exists()] == []
    assert [each for each in sources if any(fnmatch(each, p) for p in ignored)] == []


@every_dockerfile
def test_stages_that_are_copied_from_come_before(dockerfile: Path) -> None:
    known: set[str] = set()
    for name, arguments in _instructions(dockerfile):
        if name == "FROM":
            known.add(arguments.partition(" AS ")[2])
        for stage in re.findall(r"--from=(\S+)", arguments):
            assert stage in known


@every_dockerfile
def test_extras_that_are_installed_exist(dockerfile: Path) -> None:
    (extras,) = re.findall(r"--editable '\.\[([\w,]+)\]'", dockerfile.read_text())

    assert set(extras.split(",")) <= set(_setup()["options.extras_require"])


@every_dockerfile
def test_python_is_one_that_oseq_supports(dockerfile: Path) -> None:
    stages = _stages(dockerfile)
    classifiers = _setup()["metadata"]["classifiers"]

    # The environment is copied from one stage to the other.
    assert stages["build"] == stages[""]
    (version,) = re.findall(r"^python:(\d+\.\d+)-", stages["build"])
    assert f"Programming Language :: Python :: {version}\n" in classifiers


def test_cuda_is_the_one_of_tensorflow() -> None:
    _, dockerfile = DOCKERFILES
    image = _stages(dockerfile)["cuda"]
    version = tf.sysconfig.get_build_info()["cuda_version"]
    major_minor = version.rpartition(".")[0]

    assert image.startswith(f"nvidia/cuda:{version}-devel-")
    assert f"COPY --from=cuda /usr/local/cuda-{major_minor} " in dockerfile.read_text()


def test_tensorflow_of_the_gpu_extra_is_the_one_of_oseq() -> None:
    setup = _setup()
    (required,) = re.findall(
        r"^tensorflow==(.*)$", setup["options"]["install_requires"], re.MULTILINE
    )
    (extra,) = re.findall(
        r"^tensorflow\[and-cuda\]==(.*)$",
        setup["options.extras_require"]["gpu"],
        re.MULTILINE,
    )

    assert extra == required


@every_dockerfile
def test_the_command_is_the_demo_in_the_environment_of_the_image(
    dockerfile: Path,
) -> None:
    (command,) = _arguments(dockerfile, "CMD")

    # By `make test` this make would be one inside of another, and say so.
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("MAKE")
    }
    result = subprocess.run(
        [*json.loads(command), "--dry-run", "--always-make"],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
    )

    assert result.returncode == 0, result.stderr
    steps = result.stdout.replace("\\\n", " ").splitlines()
    assert [step.split()[0] for step in steps] == ["python"] * 4
    assert "--mode=train_eval" in steps[1] and "score.py" in steps[3]

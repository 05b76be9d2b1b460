"""The wiring of an ensemble: where its members are, and what they are made like."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from oseq.config.config import SAVED_NAME, Config
from oseq.config.loader import load_config
from oseq.config.params import ConfigError
from oseq.training import checkpoint as checkpoints


class Member(NamedTuple):
    """One trained model of an ensemble."""

    config: Config  # of the run that trained it
    checkpoint: Path


def find_members(paths: Sequence[str], mode: str, first: Path) -> list[Member]:
    """Returns the members that join a run's own model.

    Args:
      paths: of ``--ensemble``: a logdir, or a checkpoint or folder of them in one.
      mode: whose params say what a member is like.
      first: the checkpoint that they join.

    Raises:
      ConfigError: there is no run's config, or it is not valid, or the run read its
        data in another way.
      CheckpointError: there is no checkpoint.
    """
    return [_find_member(Path(path), mode, first) for path in paths]


def _find_member(path: Path, mode: str, first: Path) -> Member:
    checkpoint = checkpoints.find(path)
    saved = _saved_config(checkpoint)
    if saved is None:
        raise ConfigError(
            f"--ensemble: {path}: no {SAVED_NAME} of a run there, which says what the "
            "model is like; give a logdir, or a checkpoint inside one"
        )
    config = load_config(saved)
    try:
        config.params(mode)
    except ConfigError as error:
        raise ConfigError([f"--ensemble: {saved}:", *error.problems]) from error
    fingerprints = {
        checkpoints.read_header(each).vocabulary_fingerprint
        for each in (first, checkpoint)
    }
    if len(fingerprints) > 1:
        raise ConfigError(
            f"--ensemble: {checkpoint} was trained with other tokenizers or "
            f"vocabularies than {first}; members of an ensemble must have the same"
        )
    return Member(config, checkpoint)


def _saved_config(checkpoint: Path) -> Path | None:
    """Returns the config of the run that a checkpoint lies in."""
    # LOGDIR/best/step-0000800.safetensors
    for folder in list(checkpoint.absolute().parents)[:2]:
        if (folder / SAVED_NAME).is_file():
            return folder / SAVED_NAME
    return None

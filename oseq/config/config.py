"""A loaded config: what its file says, what the command line adds, and its check."""

from __future__ import annotations

import dataclasses
import logging
import os
import types
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from oseq.config.experiment import Experiment
from oseq.config.merging import copy_value, holds, import_dotted_paths, merge
from oseq.config.overrides import Override, UnknownKey, apply_override
from oseq.config.params import (
    ConfigError,
    check_params,
    find_problems,
    schema_of,
)
from oseq.config.plain import to_plain
from oseq.config.rules import broken_rules

MODES = ("train", "eval", "infer")
SAVED_NAME = "config.yaml"
# What each mode of the command line runs, in terms of a config's own three modes.
MODES_OF = {
    "train": ("train",),
    "eval": ("eval",),
    "train_eval": ("train", "eval"),
    "infer": ("infer",),
    "interactive_infer": ("infer",),
    "score": ("infer",),
    "average": ("eval",),
    "export": ("infer",),
}
CLI_MODES = tuple(MODES_OF)
_log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Config:
    """One experiment.

    Args:
      base_model: class of the model.
      base_params: values for all modes.
      mode_params: values of ``train``, ``eval`` and ``infer`` alone.
      overrides: settings of the command line; they win.
      path: file that the config came from.
      front_end: values of the data layer that a trained model prescribes.
    """

    base_model: Any
    base_params: Mapping[str, Any]
    mode_params: Mapping[str, Mapping[str, Any]]
    overrides: tuple[Override, ...] = ()
    path: Path | None = None
    front_end: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def schema(self) -> Experiment:
        """The component that declares the keys of this config's params."""
        return Experiment(self.base_model)

    def params(self, mode: str) -> Mapping[str, Any]:
        """Returns a mode's values, complete and read-only.

        Base, then the mode's own, then the command line's, then what a trained
        model prescribes. ``interactive_infer`` and ``score`` share the values of
        ``infer``.

        Raises:
          ConfigError: values are missing, unknown or of the wrong kind.
        """
        params, problems, _ = self.merge(MODES_OF[mode][0])
        if problems:
            raise ConfigError(problems)
        return check_params(self.schema, params, f"{mode}_params")

    def model_params(self, mode: str) -> Mapping[str, Any]:
        """Returns the part of ``params`` that the model declares itself."""
        params = self.params(mode)
        keys = schema_of(self.base_model)
        return types.MappingProxyType({key: params[key] for key in keys})

    def check(self, mode: str) -> None:
        """Checks everything at once: all that ``mode`` uses, and every overlay.

        Raises:
          ConfigError: lists all problems.
        """
        used = MODES_OF[mode]
        checked = [each for each in MODES if each in used or self.mode_params.get(each)]
        problems: list[str] = []
        unknown: list[list[str]] = []
        for each in checked:
            params, wrong, unknown_here = self.merge(each)
            wrong += find_problems(self.schema, params, each)
            if each in used:
                # train_eval's own rules hold for its train half.
                asked = mode if each == used[0] else each
                wrong += self._broken_rules(params, asked, wrong)
                unknown.append(unknown_here)
            problems += [self._with_origin(each, problem) for problem in wrong]
        # A key need not exist in every mode: infer may have another decoder.
        problems += [
            flag for flag in unknown[0] if all(flag in all_ for all_ in unknown)
        ]
        if problems:
            raise ConfigError(_one_per_path(problems))

    def merge(self, mode: str) -> tuple[dict[str, Any], list[str], list[str]]:
        """Returns a mode's values as given, unchecked.

        Returns:
          The values; what is wrong with them so far; which overrides name keys that
          this mode does not have.
        """
        problems: list[str] = []
        overlay = self.mode_params.get(mode) or {}
        params = merge(self.base_params, overlay, mode, problems)
        import_dotted_paths(self.schema, params, mode, problems)
        unknown = []
        # The shorter first: a class decides which keys its params have.
        for override in sorted(self.overrides, key=lambda each: len(each.keys)):
            try:
                apply_override(self.schema, params, override)
            except UnknownKey as error:
                unknown += error.problems
            except ConfigError as error:
                problems += error.problems
        if self.front_end:
            params["data_layer_params"] = {
                **(params.get("data_layer_params") or {}),
                **self.front_end,
            }
        return params, problems, unknown

    def with_front_end_of(self, logdir: str | os.PathLike[str], mode: str) -> Config:
        """Returns this config, reading data as the model in ``logdir`` was trained.

        Tokenizer, vocabulary and features belong to the model: the values of the
        data layer's ``front_end_keys`` come from the config that the training run
        wrote. A value that differs is named in a warning.

        Raises:
          ConfigError: the saved config is damaged.
        """
        saved_path = Path(logdir) / SAVED_NAME
        if not saved_path.is_file():
            _log.warning(
                "%s does not exist: tokenizer, vocabulary and features are taken from "
                "this config and may differ from the trained model's",
                saved_path,
            )
            return self
        saved = _saved_data_layer_params(saved_path)
        params = self.params(mode)
        given = params["data_layer_params"]
        front_end = {}
        for key in params["data_layer"].front_end_keys:
            if key not in saved:
                continue
            if to_plain(given.get(key)) == saved[key]:
                front_end[key] = given.get(key)
                continue
            front_end[key] = saved[key]
            _log.warning(
                "data_layer_params/%s is %r here, but the model was trained with %r; "
                "using the latter",
                key,
                given.get(key),
                saved[key],
            )
        return dataclasses.replace(self, front_end=front_end)

    def to_yaml(self) -> str:
        """Returns the config as text that loads again.

        What the command line set is in it, and ``train_params`` hold every default.
        """
        train = self.params("train")
        content = {
            "base_model": self.base_model,
            "base_params": self.base_params,
            "train_params": train,
            **{f"{mode}_params": self._own_and_set(mode) for mode in ("eval", "infer")},
        }
        return yaml.safe_dump(to_plain(content), sort_keys=False, allow_unicode=True)

    def write(self, logdir: str | os.PathLike[str]) -> Path:
        """Writes ``config.yaml`` into ``logdir``; a reader never sees half of it."""
        path = Path(logdir) / SAVED_NAME
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{SAVED_NAME}.{os.getpid()}")
        temporary.write_text(self.to_yaml(), encoding="utf-8")
        temporary.replace(path)
        return path

    def _own_and_set(self, mode: str) -> dict[str, Any]:
        """Returns a mode's overlay with the command line's settings in it."""
        merged, _, _ = self.merge(mode)
        own = merge(self.mode_params.get(mode) or {}, {}, mode, [])
        for override in self.overrides:
            copy_value(merged, own, override.keys)
        return own

    def _broken_rules(
        self, params: Mapping[str, Any], mode: str, wrong: list[str]
    ) -> list[str]:
        complete = dict(params)
        for key, (param, _) in schema_of(self.schema).items():
            complete.setdefault(key, param.default)
        wrong_keys = {problem.partition(":")[0].split("/")[-1] for problem in wrong}
        return [f"{mode}/{text}" for text in broken_rules(complete, mode, wrong_keys)]

    def _with_origin(self, mode: str, problem: str) -> str:
        """Turns "eval/a/b: ..." into the dict of the file that sets the key."""
        if problem.startswith("--"):
            return problem
        path, colon, text = problem.partition(":")
        _, *keys = path.split("/")
        if any(list(override.keys) == keys for override in self.overrides):
            return f"--{'/'.join(keys)}{colon}{text}"
        overlay = self.mode_params.get(mode) or {}
        origin = f"{mode}_params" if holds(overlay, keys) else "base_params"
        return "/".join([origin, *keys]) + colon + text


def _saved_data_layer_params(path: Path) -> Mapping[str, Any]:
    """Returns the data layer's values of a training run, as plain values."""
    try:
        return yaml.safe_load(path.read_bytes())["train_params"]["data_layer_params"]
    except (yaml.YAMLError, UnicodeDecodeError, KeyError, TypeError) as error:
        raise ConfigError(f"{path} is damaged: {error!r}") from error


def _one_per_path(problems: Iterable[str]) -> list[str]:
    """Drops what follows from an earlier problem of the same key, and repetitions."""
    by_path: dict[str, str] = {}
    for problem in problems:
        by_path.setdefault(problem.split(": ")[0], problem)
    return list(by_path.values())

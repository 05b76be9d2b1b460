"""While an old config file runs: the modules it imports."""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf

from oseq.compat.symbols import (
    VALUES,
    OldTensorFlow,
    Symbol,
    noting_calls,
    open_seq2seq_value,
)
from oseq.compat.tables import COUNTERPARTS, FUNCTIONS, MODELS

_OLD = "open_seq2seq"


class _OldModule(types.ModuleType):
    """A module of OpenSeq2Seq: has whatever is asked of it."""

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":  # from open_seq2seq.encoders import *
            return _names_in(self.__name__)
        if name.startswith("__"):
            raise AttributeError(name)
        return open_seq2seq_value(self.__name__, name)


def _names_in(module: str) -> list[str]:
    """Returns the names that the tables know of a package of OpenSeq2Seq's."""
    package = ".".join(module.split(".")[:2])
    known = [name.rpartition(".") for name in (*COUNTERPARTS, *MODELS, *FUNCTIONS)]
    values = VALUES if module.startswith(f"{_OLD}.data.text2text") else ()
    return [*(name for of, _, name in known if of == package), *values]


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds every module of OpenSeq2Seq, and those that TensorFlow has lost."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: types.ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        root, _, rest = fullname.partition(".")
        lost = root == "tensorflow" and rest.split(".")[0] in ("contrib", "layers")
        if root != _OLD and not lost:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        if spec.name.startswith(_OLD):
            return _OldModule(spec.name)
        return OldTensorFlow(spec.name.replace("tensorflow", "tf", 1), None)

    def exec_module(self, module: types.ModuleType) -> None:
        module.__path__ = []


@contextlib.contextmanager
def old_modules(calls: list[str] | None = None) -> Iterator[types.ModuleType]:
    """Provides ``open_seq2seq`` and a ``tensorflow`` with the names of TensorFlow 1.

    Afterwards all is as before, whatever happens, and modules that have seen a
    stand-in meanwhile (an old file's own helpers) are forgotten. The search path keeps
    what the file has added: its classes may import more later on.

    Args:
      calls: gets the names of what the file calls and nobody has any more.

    Yields:
      the ``tf`` that an old file may use without importing it.
    """
    before = dict(sys.modules)
    finder = _Finder()
    old = OldTensorFlow("tf", tf, COUNTERPARTS)
    sys.meta_path.insert(0, finder)
    for name in [name for name in sys.modules if name.split(".")[0] == _OLD]:
        del sys.modules[name]
    sys.modules["tensorflow"] = old
    try:
        with noting_calls([] if calls is None else calls):
            yield old
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if name not in before]:
            if _has_seen_a_stand_in(sys.modules[name]):
                del sys.modules[name]
        for name, module in before.items():
            if sys.modules.get(name) is not module:
                sys.modules[name] = module


def _has_seen_a_stand_in(module: types.ModuleType) -> bool:
    stand_ins = (_OldModule, OldTensorFlow, Symbol)
    return isinstance(module, stand_ins) or any(
        isinstance(value, stand_ins) for value in vars(module).values()
    )

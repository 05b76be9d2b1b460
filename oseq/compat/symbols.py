"""Stand-ins for what old config files name: known by its dotted name alone."""

from __future__ import annotations

import contextlib
import enum
import types
from collections.abc import Collection, Iterator
from typing import Any

from oseq.config.params import ConfigError


class SpecialTextTokens(enum.Enum):
    """The ids of special tokens, as old files import them."""

    PAD_ID = 0
    EOS_ID = 1
    S_ID = 2
    UNK_ID = 3
    OUT_OF_BUCKET = 1234567890
    END_OF_CHOICE = -100

    @staticmethod
    def to_string(s_token: int) -> str:
        """Returns the word for an id, as old vocabularies have it."""
        return _WORDS[SpecialTextTokens(s_token)]


_WORDS = {
    SpecialTextTokens.PAD_ID: "<PAD>",
    SpecialTextTokens.EOS_ID: "</S>",
    SpecialTextTokens.S_ID: "<S>",
    SpecialTextTokens.UNK_ID: "<UNK>",
}


# What old files import from OpenSeq2Seq and compute with.
VALUES = {
    "SpecialTextTokens": SpecialTextTokens,
    "PAD": "<pad>",
    "PAD_ID": SpecialTextTokens.PAD_ID.value,
    "EOS": "<EOS>",
    "EOS_ID": SpecialTextTokens.EOS_ID.value,
}


# What the old files that run now have called, the innermost file's last.
_running: list[list[str]] = []


@contextlib.contextmanager
def noting_calls(calls: list[str]) -> Iterator[None]:
    """While an old file runs: its calls of symbols do nothing but get noted."""
    _running.append(calls)
    try:
        yield
    finally:
        _running.pop()


class Symbol:
    """A class, function or module of OpenSeq2Seq or TensorFlow 1.

    It may have attributes and, while the file runs, be called; what comes of it is a
    symbol again. Whether it means something to oseq is the translation's business.

    Args:
      name: dotted, e.g. ``tf.nn.rnn_cell.LSTMCell``.
    """

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # Python asks for its protocols
            raise AttributeError(name)
        return Symbol(f"{self._name}.{name}")

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if not _running:
            raise ConfigError(
                f"{self._name} has no counterpart; a function of the config calls it"
            )
        _running[-1].append(self._name)
        return Symbol(f"{self._name}(...)")

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        return (type(f"Old{self._name.rpartition('.')[2]}", (Derived,), {}),)

    def __repr__(self) -> str:
        return self._name


class Derived:
    """Base of a class that an old file derives from one of OpenSeq2Seq's."""


def name_of(value: Any) -> str | None:
    """Returns the name by which the tables know a symbol; None for other values.

    OpenSeq2Seq's classes can be imported from many modules: they go by the first of
    them, as in ``open_seq2seq.encoders.TransformerEncoder``.
    """
    if not isinstance(value, Symbol):
        return None
    parts = value._name.split(".")
    if parts[0] == "open_seq2seq" and len(parts) > 3:
        parts[2:-1] = []
    return ".".join(parts)


def open_seq2seq_value(module: str, name: str) -> Any:
    """Returns what an old file imports: ``from module import name``."""
    return VALUES[name] if name in VALUES else Symbol(f"{module}.{name}")


class OldTensorFlow(types.ModuleType):
    """TensorFlow, with TensorFlow 1's names where old files mean those.

    Args:
      name: dotted, as old files write it: ``tf.nn``.
      module: the module of today; None where there is none any more.
      retired: dotted names that mean TensorFlow 1's, whatever there is today.
    """

    def __init__(
        self,
        name: str,
        module: types.ModuleType | None,
        retired: Collection[str] = (),
    ):
        super().__init__(name.replace("tf", "tensorflow", 1))
        self.__path__: list[str] = list(getattr(module, "__path__", ()))
        self.__spec__ = getattr(module, "__spec__", None)
        self.__dict__["_old_name"] = name
        self.__dict__["_module"] = module
        self.__dict__["_retired"] = retired

    def __getattr__(self, name: str) -> Any:
        full_name = f"{self._old_name}.{name}"
        if name.startswith("__"):
            return getattr(self._module, name)
        if full_name in self._retired or not hasattr(self._module, name):
            return Symbol(full_name)
        value = getattr(self._module, name)
        if isinstance(value, types.ModuleType):
            return OldTensorFlow(full_name, value, self._retired)
        return value

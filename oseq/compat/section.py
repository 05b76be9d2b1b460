"""One dict of an old config on its way to the native one."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any, Protocol

from oseq.compat.symbols import Symbol, name_of
from oseq.config.merging import holds


class Log(Protocol):
    """What a translation reports to."""

    def note(self, path: str, text: str) -> None: ...

    def refuse(self, path: str, text: str) -> None: ...

    def translate_class(
        self, section: Section, key: str, old: Any, params: Mapping[str, Any]
    ) -> None: ...


@dataclasses.dataclass
class Section:
    """A dict of the old config, and what the native one holds in its place.

    Attributes:
      path: of the dict in a mode's params; "" for the params themselves.
      old: its values, with the defaults that oseq does not share.
      native: what has been translated.
      mode: ``train``, ``eval`` or ``infer``; None for what all modes share.
      root: the old params that the dict stands in.
      native_root: the native ones.
      target: dotted path of the class whose keys these are.
      defaults: keys that the old file leaves out.
      place: path of the dict that the native keys go into; None: the same.
    """

    path: str
    old: Mapping[str, Any]
    native: dict[str, Any]
    mode: str | None
    root: Mapping[str, Any]
    native_root: dict[str, Any]
    log: Log
    target: str = ""
    defaults: Collection[str] = ()
    place: str | None = None

    def put(self, path: str, value: Any) -> None:
        """Sets a native value: beside the key, or under "/" anywhere in the params."""
        place = self.native_root if path.startswith("/") else self.native
        *outer, key = path.strip("/").split("/")
        for name in outer:
            place = place.setdefault(name, {})
        place[key] = value

    def put_class(self, key: str, name: str, params: Mapping[str, Any]) -> None:
        """Sets the counterpart of an old class, by its name, and its params."""
        self.log.translate_class(self, key, Symbol(name), params)

    def holds(self, path: str) -> bool:
        """Returns whether ``put`` has set that path."""
        place = self.native_root if path.startswith("/") else self.native
        return holds(place, path.strip("/").split("/"))

    def retarget(self, target: str) -> None:
        """Makes another class the counterpart of the one whose keys these are."""
        self.target = target

    def note(self, key: str, text: str) -> None:
        """Reports what became of a key that the old file has."""
        if key not in self.defaults:
            self.log.note(self.at(key), text)

    def refuse(self, key: str, text: str) -> None:
        self.log.refuse(self.at(key), text)

    def at(self, key: str) -> str:
        return f"{self.path}/{key}" if self.path else key

    def native_path(self, to: str) -> str:
        """Returns where ``put`` sets what it is given for that path."""
        place = self.path if self.place is None else self.place
        return to[1:] if to.startswith("/") else f"{place}/{to}".strip("/")

    @property
    def data_in_tokens(self) -> bool:
        """Whether the old data layer counts its batches in tokens."""
        layer = self.name(self.root.get("data_layer"))
        params = self.root.get("data_layer_params")
        in_tokens = not isinstance(params, Mapping) or params.get(
            "batch_in_tokens", True
        )
        return layer.endswith("TransformerDataLayer") and in_tokens

    def dict_at(self, key: str) -> Mapping[str, Any]:
        """Returns the dict under an old key; an empty one where there is none."""
        value = self.old.get(key)
        return value if isinstance(value, Mapping) else {}

    @staticmethod
    def name(value: Any) -> str:
        """Returns the dotted name of an old class, "" for anything else."""
        return name_of(value) or ""

    @staticmethod
    def text(value: Any) -> str:
        """Returns a value as an old file writes it."""
        is_dtype = hasattr(value, "as_numpy_dtype")
        return f"tf.{value.name}" if is_dtype else repr(value)

"""Tells config files that were written for OpenSeq2Seq, without running them."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from pathlib import Path


def is_old_config(path: str | os.PathLike[str]) -> bool:
    """Returns True for a Python file that is OpenSeq2Seq's, not oseq's.

    It imports ``open_seq2seq``, itself or through a file beside it, or it uses ``tf``
    without importing it: OpenSeq2Seq handed it in. A file that cannot be parsed is
    oseq's, which says why.
    """
    return _is_old(Path(path).resolve(), seen=set())


def _is_old(path: Path, seen: set[Path]) -> bool:
    seen.add(path)
    if path.suffix in (".yaml", ".yml"):
        return False
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return False
    modules = set(_imported_modules(tree))
    if "open_seq2seq" in modules or _uses_unknown_tf(tree):
        return True
    beside = {path.with_name(f"{module}.py") for module in modules}
    return any(_is_old(file, seen) for file in beside - seen if file.is_file())


def _imported_modules(tree: ast.Module) -> Iterator[str]:
    """Yields the first parts of the names of modules."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.split(".")[0]


def _uses_unknown_tf(tree: ast.Module) -> bool:
    used = bound = False
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == "tf":
            used |= isinstance(node.ctx, ast.Load)
            bound |= not isinstance(node.ctx, ast.Load)
        elif isinstance(node, ast.arg):
            bound |= node.arg == "tf"
        elif isinstance(node, ast.alias):
            bound |= (node.asname or node.name) in ("tf", "*")
    return used and not bound

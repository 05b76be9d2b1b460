"""The source of lambdas that old files write beside their keys."""

from __future__ import annotations

import ast
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tensorflow as tf


def source_of_lambda(value: Any) -> str | None:
    """Returns a lambda as an expression; None where another file could not hold it.

    It may consist of its arguments, constants and what TensorFlow has as ``tf``:
    ``lambda x: tf.minimum(tf.nn.relu(x), 20.0)``.
    """
    is_plain = isinstance(value, types.FunctionType) and not value.__closure__
    node = _node_of(value) if is_plain and value.__name__ == "<lambda>" else None
    if node is None or not _stands_alone(node):
        return None
    return ast.unparse(node)


def _node_of(function: types.FunctionType) -> ast.Lambda | None:
    """Returns the lambda in its file whose body the function's code is of."""
    try:
        tree = ast.parse(Path(function.__code__.co_filename).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return None
    spans = set(function.__code__.co_positions())
    for node in ast.walk(tree):
        if isinstance(node, ast.Lambda):
            body = node.body
            span = (
                body.lineno,
                body.end_lineno,
                body.col_offset,
                body.end_col_offset,
            )
            if span in spans:
                return node
    return None


def _stands_alone(node: ast.Lambda) -> bool:
    arguments = {each.arg for each in ast.walk(node) if isinstance(each, ast.arg)}
    names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    return names <= arguments | {"tf"} and all(
        _is_in_tensorflow(path) for path in _paths(node) if path[0] == "tf"
    )


def _paths(node: ast.AST) -> Iterator[list[str]]:
    """Yields names with all that is asked of them: ``["tf", "nn", "relu"]``."""
    if isinstance(node, ast.Name):
        yield [node.id]
        return
    if isinstance(node, ast.Attribute):
        for path in _paths(node.value):
            yield [*path, node.attr]
        return
    for child in ast.iter_child_nodes(node):
        yield from _paths(child)


def _is_in_tensorflow(path: list[str]) -> bool:
    place: Any = tf
    for name in path[1:]:
        if not hasattr(place, name):
            return False
        place = getattr(place, name)
    return True

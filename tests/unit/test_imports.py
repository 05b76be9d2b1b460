"""Laws about imports, held by walking the sources: nothing is imported here."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGE = REPOSITORY / "oseq"
SOURCES = sorted(PACKAGE.rglob("*.py"))

# Each layer may import its own parts and those of the layers before it.
LAYERS = (
    {"contracts"},
    {"config", "precision", "metrics", "distributed", "devices", "ngram", "native"},
    {"component", "layers", "optimizers", "search"},
    {"encoders", "decoders", "losses", "data"},
    {"models"},
    {"training", "export"},
    {
        "compat",
        "build",
        "build_ensemble",
        "build_hooks",
        "modes",
        "quiet_import",
        "cli",
        "__main__",
    },
)
LEVELS = {part: level for level, parts in enumerate(LAYERS) for part in parts}
# Parts that work together without knowing each other.
STRANGERS = {
    "data": {"models", "layers", "encoders", "decoders", "losses"},
    "models": {"data"},
    "search": {"decoders", "layers"},
    "layers": {"config"},
}
# A config names optimizers and loss scalers ("Adam", "Backoff"): the two files that
# check such keys ask for the classes behind the names, inside functions.
EXCEPTIONS = {
    "oseq/config/experiment.py": {"optimizers"},
    "oseq/config/rules.py": {"optimizers"},
}
PRIVATE_MODULES = ("keras.src", "tf_keras", "tensorflow.python", "tensorflow.keras")


def imported_modules(source: str) -> Iterator[str]:
    """Yields the dotted names that ``import a.b`` and ``from a.b import c`` bring.

    ``from a import b`` yields ``a.b``, for ``b`` may be a module.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def private_names(source: str) -> Iterator[str]:
    """Yields what is used of the frameworks' private or legacy parts."""
    for name in imported_modules(source):
        if any(f"{name}.".startswith(f"{module}.") for module in PRIVATE_MODULES):
            yield name
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            name = f"{node.value.id}.{node.attr}"
            if name in ("tf.keras", "keras.src", "tf.python"):
                yield name


def part_of(module: str) -> str | None:
    """Returns the part of oseq that a dotted name belongs to: ``oseq.data.x``."""
    names = module.split(".")
    return names[1] if names[0] == "oseq" and len(names) > 1 else None


def forbidden_parts(part: str) -> set[str]:
    """Returns the parts that ``part`` may not import."""
    later = {other for other, level in LEVELS.items() if level > LEVELS[part]}
    return later | STRANGERS.get(part, set())


def relative(source: Path) -> str:
    return str(source.relative_to(REPOSITORY))


@pytest.mark.parametrize("source", SOURCES, ids=relative)
def test_imports_go_one_way_only(source: Path) -> None:
    part = source.relative_to(PACKAGE).parts[0].removesuffix(".py")
    if part == "__init__":
        return
    assert part in LEVELS, "a new part of oseq needs its place in LAYERS"

    imported = {part_of(module) for module in imported_modules(source.read_text())}

    allowed = EXCEPTIONS.get(relative(source), set())
    assert imported & forbidden_parts(part) == allowed


@pytest.mark.parametrize("source", SOURCES, ids=relative)
def test_horovod_is_imported_in_one_file_only(source: Path) -> None:
    if source == PACKAGE / "distributed" / "horovod.py":
        return

    modules = imported_modules(source.read_text())

    assert not [name for name in modules if name.split(".")[0] == "horovod"]


@pytest.mark.parametrize("source", SOURCES, ids=relative)
def test_only_public_parts_of_the_frameworks_are_used(source: Path) -> None:
    assert list(private_names(source.read_text())) == []


@pytest.mark.parametrize(
    "statement",
    [
        "from keras.src import layers",
        "from keras import src",
        "import tensorflow.python.ops",
        "from tensorflow import keras",
        "import tensorflow as tf\ntf.keras.layers.Dense(1)",
    ],
)
def test_uses_of_private_parts_are_seen(statement: str) -> None:
    assert list(private_names(statement))


def test_forbidden_imports_are_seen() -> None:
    inside_a_function = "def build():\n    from oseq.models import model"

    (module,) = imported_modules(inside_a_function)

    assert part_of(module) in forbidden_parts("data")
    assert "models" in forbidden_parts("search")
    assert "decoders" in forbidden_parts("search")
    assert "models" not in forbidden_parts("training")

"""What the pages show works, and what they point to exists."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from oseq.config.loader import load_config

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = sorted(REPOSITORY.glob("*.md")) + sorted(REPOSITORY.glob("docs/*.md"))
EXAMPLES = sorted(
    path
    for path in REPOSITORY.glob("example_configs/**/*.py")
    if "base_params = " in path.read_text()
)
MODES = ("train", "train_eval", "eval", "infer")
PLACE = re.compile(r"`(oseq/[\w/]+\.py):(\d+) ([\w.]+)`")  # `oseq/x.py:12 f`


def _name(path: Path) -> str:
    return str(path.relative_to(REPOSITORY))


@pytest.mark.parametrize("mode", MODES)
def test_config_of_the_readme_has_no_mistakes(tmp_path: Path, mode: str) -> None:
    readme = (REPOSITORY / "README.md").read_text()
    (code,) = re.findall(r"```python\n(# my_config.py\n.*?)```", readme, re.DOTALL)
    file = tmp_path / "my_config.py"
    file.write_text(code)

    load_config(file).check(mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("example", EXAMPLES, ids=_name)
def test_example_config_has_no_mistakes(example: Path, mode: str) -> None:
    load_config(example).check(mode)


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_links_lead_to_files_that_exist(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)  # no code
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)[^)]*\)", text)

    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_files_of_oseq_that_a_page_names_exist(page: Path) -> None:
    files = set(re.findall(r"`(oseq/[\w/]+\.py)", page.read_text()))

    assert {file for file in files if not (REPOSITORY / file).exists()} == set()


def test_places_that_the_design_names_are_where_it_says() -> None:
    design = (REPOSITORY / "docs" / "design.md").read_text()
    table = design.partition("## Where things happen")[2].partition("\n## ")[0]
    _, _, *rows = [line for line in table.splitlines() if line.startswith("|")]

    assert rows and [row for row in rows if not PLACE.search(row)] == []
    for file, line, name in PLACE.findall(design):
        lines = dict(_functions(ast.parse((REPOSITORY / file).read_text())))
        assert f"{file}:{line} {name}" == f"{file}:{lines.get(name)} {name}"


def _functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, int]]:
    """Yields the functions and methods of a module with the lines they begin at."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield from _functions(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.FunctionDef):
            yield f"{prefix}{node.name}", node.lineno

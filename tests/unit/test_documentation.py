"""What the pages show works, and what they point to exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from oseq.config.loader import load_config

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = sorted(REPOSITORY.glob("*.md")) + sorted(REPOSITORY.glob("docs/*.md"))
EXAMPLES = sorted(REPOSITORY.glob("example_configs/**/*-*.py"))
MODES = ("train_eval", "eval", "infer")


def _name(path: Path) -> str:
    return str(path.relative_to(REPOSITORY))


@pytest.mark.parametrize("mode", MODES)
def test_config_of_the_readme_has_no_mistakes(tmp_path: Path, mode: str) -> None:
    (code,) = re.findall(
        r"```python\n(.*?)```", (REPOSITORY / "README.md").read_text(), re.DOTALL
    )
    file = tmp_path / "my_config.py"
    file.write_text(code)

    load_config(file).check(mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("example", EXAMPLES, ids=_name)
def test_example_config_has_no_mistakes(example: Path, mode: str) -> None:
    load_config(example).check(mode)


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_links_lead_to_files_that_exist(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)[^)]*\)", page.read_text())

    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_files_of_oseq_that_a_page_names_exist(page: Path) -> None:
    files = set(re.findall(r"`(oseq/[\w/]+\.py)", page.read_text()))

    assert {file for file in files if not (REPOSITORY / file).exists()} == set()

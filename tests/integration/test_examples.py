"""Every example config works, on toy data in the place of its own.

Those that train take their first step; searches translate with the model of the example
that they belong to.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from oseq.config.loader import load_config
from tests.integration import toy

EXAMPLES = sorted((toy.REPOSITORY / "example_configs").glob("**/*-*/*.py")) + sorted(
    (toy.REPOSITORY / "example_configs").glob("**/*-*.py")
)
CONFIGS = sorted(
    {path for path in EXAMPLES if "base_params" in path.read_text(encoding="utf-8")}
)
TINY = toy.REPOSITORY / "example_configs/text2text/multi30k/en-de-transformer-tiny.py"
SEARCHES = sorted((TINY.parent / "searches").glob("*.py"))


def _name(path: Path) -> str:
    return str(path.relative_to(toy.REPOSITORY / "example_configs"))


@pytest.mark.parametrize("example", CONFIGS, ids=_name)
def test_the_example_takes_its_first_step_and_is_used(workplace, example):
    outcome = _take_first_step(example, "train_eval")
    assert list(toy.losses(outcome)) == [1]
    assert toy.metrics(outcome).keys() >= {"loss", "BLEU"}
    assert toy.newest("run").header.step == 1


@pytest.fixture(scope="module")
def tiny(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The logdir of the example that the searches belong to."""
    place = tmp_path_factory.mktemp("tiny")
    shutil.copytree(corpus, place / "data" / "toy-reversal")
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.chdir(place)
        _take_first_step(TINY, "train")
    return place / "run"


@pytest.mark.parametrize("example", SEARCHES, ids=_name)
def test_the_search_answers_every_line(workplace, tiny, example):
    source, num_lines = Path("data/toy-reversal/test/source.txt"), 5
    lines = source.read_text(encoding="utf-8").splitlines()[:num_lines]
    Path("few.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    toy.succeed(
        "--mode=infer",
        f"--logdir={tiny}",
        "--search_params/max_length=8",
        "--infer_input_file=few.txt",
        "--infer_output_file=answers.txt",
        config=example,
    )
    params = load_config(example).params("infer")["search_params"]
    num_hypotheses = params.get("num_best") or params.get("num_samples") or 1
    answers = Path("answers.txt").read_text(encoding="utf-8").splitlines()
    assert len(answers) == num_lines * num_hypotheses


def _take_first_step(example: Path, mode: str) -> toy.Outcome:
    corpus = "data/toy-reversal"
    params = load_config(example).params("train")["data_layer_params"]
    arguments = [
        f"--data_layer_params/source_file={corpus}/train/source.txt",
        f"--data_layer_params/target_file={corpus}/train/target.txt",
        "--logdir=run",
        "--max_steps=1",
        "--eval_steps=1",
        "--print_loss_steps=1",
    ]
    if params["sentencepiece_model"] is not None:
        arguments += [
            "--data_layer_params/sentencepiece_model=subwords.model",
            "--data_layer_params/sentencepiece_vocab_size=300",
        ]
    return toy.succeed(f"--mode={mode}", *arguments, config=example)

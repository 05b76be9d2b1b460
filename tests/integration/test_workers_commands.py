"""What two and three workers train, resume, evaluate, translate and score.

Each number of workers runs all its commands in one job, for the sake of time.
"""

from __future__ import annotations

import json
import math
import re
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

pytest.importorskip("horovod", reason="docker/install_horovod.sh installs Horovod")

from oseq.training import checkpoint as checkpoints  # noqa: E402
from tests.integration import commands_process, toy  # noqa: E402
from tests.integration.workers import Workers  # noqa: E402

pytestmark = pytest.mark.alone

NUM_EXAMPLES = 300
BATCHES = 19  # of an epoch of one worker: 16 examples each
HOOKS = "tests.integration.worker_hooks."
TRAIN = (
    *toy.TINY,
    "--mode=train",
    "--max_steps=None",
    "--num_epochs=3",
    "--save_checkpoint_steps=10",
    "--num_checkpoints=9",
    "--print_loss_steps=5",
    "--save_summaries_steps=None",
    "--encoder_params/relu_dropout=0.1",
    "--lr_policy_params/decay_steps=60",
    "--lr_policy_params/warmup_steps=5",
)
NORM = "--encoder_params/norm_params={'type': 'batch_norm'}"
# Without a least length a model that knows so little gives blank answers.
MODEL = (*toy.TINY, "--logdir=whole", "--search_params/min_length=3")


class Command(NamedTuple):
    """What one worker had to say after a command."""

    code: int
    out: str
    err: str
    ids: list[list[int]]  # of each batch that it trained on


class Job:
    """Runs commands by some workers; ``job[name]`` is what became of one, by rank."""

    def __init__(self, size: int, commands: dict[str, tuple[str, ...]]):
        folder = Path(f"job{size}").resolve()
        folder.mkdir()
        listed = [
            [{"OSEQ_TEST_STEP": str(DISASTERS.get(name, 0))}, arguments]
            for name, arguments in commands.items()
        ]
        (folder / "commands.json").write_text(json.dumps(listed))
        with Workers(size, "-m", commands_process.__name__, folder) as workers:
            outcomes = workers.finish(seconds=400)
        assert [outcome.code for outcome in outcomes] == [0] * size, outcomes
        self._commands: dict[str, list[Command]] = {name: [] for name in commands}
        for rank in range(size):
            found = json.loads((folder / f"{rank}.json").read_text())
            for name, (code, out, err, notes) in zip(commands, found, strict=True):
                ids = [list(map(int, line.split())) for line in notes.splitlines()]
                self._commands[name].append(Command(code, out, err, ids))

    def __getitem__(self, name: str) -> list[Command]:
        return self._commands[name]

    def succeeded(self, name: str) -> Command:
        """Returns what the chief of a successful command had to say."""
        chief, *others = self[name]
        assert chief.code == 0, chief.err
        for other in others:
            assert (other.code, other.out) == (0, ""), other.err
            assert "oseq: error" not in other.err, other.err
        return chief


# The update after which a hook does something to a worker.
DISASTERS = {"terminated": 12, "full disk": 20}


def outputs_of(size: int) -> dict[str, tuple[str, ...]]:
    """Returns commands that use the model, with names of their outputs in it."""
    text = ("--infer_input_file=lines.txt", f"--infer_output_file=lines.{size}")
    few = ("--infer_input_file=few.txt", f"--infer_output_file=few.{size}")
    pairs = (
        "--infer_input_file=data/toy-reversal/test/source.txt",
        "--score_target_file=data/toy-reversal/test/target.txt",
        f"--infer_output_file=scores.{size}",
    )
    return {
        "eval": (*MODEL, "--mode=eval"),
        "infer": (*MODEL, "--mode=infer", *text),
        "infer few": (*MODEL, "--mode=infer", *few),
        "score": (*MODEL, "--mode=score", *pairs),
    }


@pytest.fixture(scope="module")
def place(corpus: Path, tmp_path_factory):
    """A working directory for all: corpus, and lines to be translated."""
    place = tmp_path_factory.mktemp("workers")
    shutil.copytree(corpus, place / "data" / "toy-reversal")
    lines = (corpus / "test" / "source.txt").read_text().splitlines()
    lines[3:3] = ["", " "]
    (place / "lines.txt").write_text("\n".join(["", *lines, ""]) + "\n")
    (place / "few.txt").write_text(f"{lines[0]}\n\n")
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.chdir(place)
        yield place


@pytest.fixture(scope="module")
def two(place: Path) -> Job:
    again = (*TRAIN, "--logdir=run", "--resume=must")
    return Job(
        2,
        {
            "whole": (
                *(*TRAIN, "--logdir=whole"),
                *("--mode=train_eval", "--eval_steps=100"),
            ),
            "batch norm": (
                *(*TRAIN, "--logdir=norm", "--max_steps=4", "--num_epochs=None"),
                *("--mode=train_eval", "--eval_steps=2", NORM),
            ),
            "terminated": (*TRAIN, "--logdir=run", f"--hooks=[{HOOKS}Terminated]"),
            "full disk": (*again, f"--hooks=[{HOOKS}FullDisk]"),
            "resumed": again,
            **outputs_of(2),
        },
    )


@pytest.fixture(scope="module")
def one(two: Job) -> dict[str, toy.Outcome]:
    """What one worker does with the models of two."""
    two.succeeded("terminated")
    first = checkpoints.newest_first(Path("run/checkpoints"))[-2]  # not 10
    Path("changed/checkpoints").mkdir(parents=True)
    shutil.copy(first, "changed/checkpoints")
    commands = {
        "changed": (
            *(*TRAIN, "--logdir=changed", "--resume=must"),
            *("--num_epochs=None", "--max_steps=30"),
        ),
        "eval batch norm": (*toy.TINY, "--logdir=norm", "--mode=eval", NORM),
        **outputs_of(1),
    }
    return {name: toy.succeed(*arguments) for name, arguments in commands.items()}


@pytest.fixture(scope="module")
def three(one) -> Job:
    return Job(
        3,
        {
            "changed": (
                *(*TRAIN, "--logdir=changed", "--resume=must"),
                "--num_epochs=4",
            ),
            **outputs_of(3),
        },
    )


@pytest.fixture(params=[2, 3])
def several(request) -> Job:
    return request.getfixturevalue({2: "two", 3: "three"}[request.param])


def test_every_worker_trains_as_often_and_no_example_is_lost(two, three):
    updates = math.ceil(BATCHES / 2)
    assert [len(worker.ids) for worker in two["whole"]] == [3 * updates] * 2
    epochs = [examples_in(two["whole"], updates * epoch, updates) for epoch in (0, 1)]
    assert sorted(epochs[0]) == sorted(epochs[1]) == list(range(NUM_EXAMPLES))
    assert epochs[0] != epochs[1]

    updates = math.ceil(BATCHES / 3)
    (num_updates,) = {len(worker.ids) for worker in three["changed"]}
    last_epoch = examples_in(three["changed"], num_updates - updates, updates)
    assert sorted(last_epoch) == list(range(NUM_EXAMPLES))


def examples_in(workers: list[Command], first: int, num_updates: int) -> list[int]:
    """Returns what all workers together have seen in some updates."""
    return [
        each
        for worker in workers
        for batch in worker.ids[first : first + num_updates]
        for each in batch
    ]


def test_a_signal_for_one_worker_stops_all_after_the_same_update(two):
    chief = two.succeeded("terminated")
    _, other = two["terminated"]

    assert len(chief.ids) == len(other.ids)
    (step,) = re.findall(r"stopping at step (\d+): a signal for another", chief.err)
    assert 12 <= int(step) <= 15
    assert f"saved run/checkpoints/step-{int(step):07d}" in chief.err


def test_workers_go_on_as_if_they_had_not_been_interrupted(two):
    chief = two.succeeded("resumed")

    assert "the data is not what it was" not in chief.err
    for rank, worker in enumerate(two["resumed"]):
        before = two["terminated"][rank].ids
        assert before + worker.ids == two["whole"][rank].ids
    toy.assert_same_state(toy.newest("run"), toy.newest("whole"))
    random = [
        [name for name in toy.newest("run").tensors if name.startswith(f"random/{n}/")]
        for n in range(3)
    ]
    assert len(random[0]) == len(random[1]) > 0 == len(random[2])


def test_a_full_disk_of_the_chief_ends_all_and_spoils_nothing(two):
    chief, other = two["full disk"]

    assert chief.code == 2
    assert "cannot write the checkpoint run/checkpoints/step-0000020" in chief.err
    assert "Make room or choose another logdir, then resume" in chief.err
    assert other.code == 75
    (line,) = other.err.strip().splitlines()
    assert line.startswith("oseq: error: the first worker has failed: cannot write")
    # "resumed" came afterwards.
    resumed = two.succeeded("resumed")
    (step,) = re.findall(r"saved .*/step-(\d+)", two.succeeded("terminated").err)[-1:]
    assert f"/step-{step}.safetensors at step {int(step)}" in resumed.err


def test_two_workers_then_one_then_three_go_on_with_the_run(two, one, three):
    chief = three.succeeded("changed")
    by_one, by_three = one["changed"].err, chief.err
    losses = [
        toy.losses(each) for each in (two["terminated"][0], one["changed"], chief)
    ]

    assert "workers was 2, is 1" in by_one and "workers was 1, is 3" in by_three
    rule = r"going on after the same share of the epoch, at epoch (\d), batch (\d+) of "
    first = re.findall(rule + "19", by_one)
    second = re.findall(rule + "7", by_three)
    (step,) = re.findall(r"stopping at step (\d+)", two["terminated"][0].err)
    batches = int(step) - 10  # of ten in the second epoch
    assert first == [("1", str(round(batches / 10 * 19)))]
    done = int(first[0][1]) + 30 - int(step) - 19  # by one worker, in the third epoch
    assert second == [("2", str(round(done / 19 * 7)))]

    assert max(losses[0]) < min(losses[1]) <= max(losses[1]) < min(losses[2])
    assert losses[0][5] > losses[1][30] > losses[2][max(losses[2])]
    assert toy.newest("changed").header.step == 30 + 7 - int(second[0][1]) + 7
    assert [f"random/{rank}/0000" in toy.newest("changed").tensors for rank in range(4)]


def test_metrics_are_those_of_one_worker_to_the_last_digit(several, one):
    chief = several.succeeded("eval")

    lines = [line for line in one["eval"].err.splitlines() if "perplexity" in line]
    assert len(lines) == 1
    assert lines[0] in chief.err.splitlines()


def test_one_worker_finds_the_metrics_of_two_that_followed_statistics(two, one):
    """Of each worker's own batches, until the model is judged."""
    chief = two.succeeded("batch norm")

    assert toy.metrics(chief) == toy.metrics(one["eval batch norm"])
    assert "differ between workers" not in chief.err


def test_outputs_are_those_of_one_worker_to_the_byte(several, one):
    size = len(several["infer"])
    for command, name in (
        ("infer", "lines"),
        ("infer few", "few"),
        ("score", "scores"),
    ):
        chief = several.succeeded(command)
        assert chief.out == one[command].out == ""
        expected = Path(f"{name}.1").read_bytes()
        assert Path(f"{name}.{size}").read_bytes() == expected
        assert not Path(f"{name}.{size}.partial").exists()
    assert Path("few.1").read_text().count("\n") == 2
    answers = Path("lines.1").read_text().split("\n")
    lines = Path("lines.txt").read_text().split("\n")
    assert [not answer for answer in answers] == [not line.strip() for line in lines]

"""A run that was interrupted goes on as if it had not been."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from oseq.training import checkpoint as checkpoints
from tests.integration import toy

pytestmark = pytest.mark.alone

DROPOUT = ("--encoder_params/relu_dropout=0.1", "--decoder_params/relu_dropout=0.1")
ARGUMENTS = (
    *toy.TINY,
    *DROPOUT,
    "--mode=train",
    "--max_steps=40",
    "--save_checkpoint_steps=10",
    "--print_loss_steps=10",
    "--save_summaries_steps=10",
    "--lr_policy_params/decay_steps=40",
)

# A config may hold any code: this one ends its own process where it is told to.
SUICIDE = """
import os
import signal
from pathlib import Path

from oseq.training import checkpoint
from oseq.training.hooks.hook import Hook

globals().update(__import__("runpy").run_path({config!r}))
place, _, step = os.environ.get("DIE", "nowhere:0").partition(":")
save_file, replace, unlink = checkpoint.save_file, os.replace, Path.unlink
num_saved = 0


def die():
    os.kill(os.getpid(), signal.SIGKILL)


class Die(Hook):
    every_steps = 1

    def after_step(self, trainer, result):
        if place == "step" and trainer.step == int(step):
            die()


def save_half(tensors, path, metadata):
    save_file(tensors, path, metadata=metadata)
    if place == "writing" and f"step-{{int(step):07d}}" in str(path):
        with open(path, "r+b") as file:
            file.truncate(os.path.getsize(path) // 2)
        die()


def replace_never(source, target):
    if place == "renaming" and f"step-{{int(step):07d}}" in str(target):
        die()
    replace(source, target)


checkpoint.save_file = save_half
os.replace = replace_never
base_params = {{**base_params, "hooks": [Die]}}
"""


@pytest.fixture(scope="module")
def undisturbed(corpus: Path, tmp_path_factory: pytest.TempPathFactory):
    """The outcome and the logdir of a run that nothing interrupted."""
    place = tmp_path_factory.mktemp("undisturbed")
    (place / "data").mkdir()
    (place / "data" / "toy-reversal").symlink_to(corpus)
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.chdir(place)
        outcome = toy.succeed(*ARGUMENTS, f"--logdir={place / 'run'}")
    return outcome, place / "run"


def test_training_twice_as_long_is_training_and_resuming(undisturbed, workplace):
    whole, whole_logdir = undisturbed
    first = toy.succeed(*ARGUMENTS, "--logdir=run", "--max_steps=20")
    second = toy.succeed(*ARGUMENTS, "--logdir=run", "--resume=must")

    assert list(toy.losses(first)) == [10, 20]
    assert list(toy.losses(second)) == [30, 40]
    assert toy.losses(first) | toy.losses(second) == pytest.approx(
        toy.losses(whole), rel=1e-3
    )
    toy.assert_same_state(toy.newest("run"), toy.newest(whole_logdir))
    losses = toy.curves("run")["train/loss"]
    assert list(losses) == [10, 20, 30, 40]
    np.testing.assert_allclose(
        list(losses.values()),
        list(toy.curves(whole_logdir)["train/loss"].values()),
        rtol=1e-3,
    )


def test_a_run_killed_again_and_again_ends_like_an_undisturbed_one(
    undisturbed, workplace
):
    config = workplace / "suicide.py"
    config.write_text(SUICIDE.format(config=str(toy.CONFIG)))

    def lasts_until(place):
        outcome = toy.in_process(
            *ARGUMENTS,
            "--logdir=run",
            "--resume=auto",
            config=config,
            environment={"DIE": place},
        )
        assert outcome.code == -signal.SIGKILL, outcome.err
        return checkpoints.newest_first(workplace / "run" / "checkpoints")

    assert lasts_until("step:7") == []
    saved = lasts_until("step:17")
    assert [checkpoints.step_of(path) for path in saved] == [10]
    saved = lasts_until("writing:20")
    assert [checkpoints.step_of(path) for path in saved] == [10]
    saved = lasts_until("renaming:30")
    assert [checkpoints.step_of(path) for path in saved] == [20, 10]

    toy.succeed(*ARGUMENTS, "--logdir=run", "--resume=auto")
    toy.assert_same_state(toy.newest("run"), toy.newest(undisturbed[1]))
    assert list((workplace / "run" / "checkpoints").glob("*.partial")) == []


def test_a_run_killed_at_any_moment_ends_like_an_undisturbed_one(
    undisturbed, workplace
):
    moment = random.SystemRandom().uniform(0.0, 1.0)
    process = toy.start_process(
        *ARGUMENTS, "--logdir=run", "--save_checkpoint_steps=1", "--print_loss_steps=1"
    )
    with process:
        for line in process.stderr:
            if line.startswith(b"saved"):
                break
        time.sleep(moment)
        process.kill()

    toy.succeed(*ARGUMENTS, "--logdir=run", "--resume=auto")
    toy.assert_same_state(toy.newest("run"), toy.newest(undisturbed[1]))


def test_sigterm_saves_and_leaves_in_peace(undisturbed, workplace):
    process = toy.start_process(
        *ARGUMENTS, "--logdir=run", "--max_steps=100000", "--print_loss_steps=1"
    )
    with process:
        for line in process.stderr:
            if line.startswith(b"step 12/"):
                break
        process.terminate()
        rest = process.stderr.read().decode()
        assert process.wait(timeout=60) == 0, rest
    (*_, last) = rest.splitlines()
    step = toy.newest("run").header.step
    assert step >= 12
    assert f"stopping at step {step}: SIGTERM was received" in rest
    assert last == f"saved run/checkpoints/step-{step:07d}.safetensors"

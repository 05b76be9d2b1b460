"""A mistake of the user's is exit code 2 and a message; a failure of oseq's is 1."""

from __future__ import annotations

import pytest

from oseq.training.trainer import Trainer
from tests.integration import toy

TINY = (*toy.TINY, "--logdir=run")


def mistake(*arguments, **options) -> str:
    outcome = toy.oseq(*TINY, *arguments, **options)
    assert outcome.code == 2, outcome.err
    assert "Traceback" not in outcome.err
    _, _, message = outcome.err.rpartition("oseq: error: ")
    return message


def test_an_unknown_key_is_named_with_the_one_that_was_meant(workplace):
    assert (
        "--encoder_params/hidden_sise: unknown key; did you mean "
        "--encoder_params/hidden_size?" in mistake("--encoder_params/hidden_sise=3")
    )


def test_a_missing_file_is_named(workplace):
    assert "nowhere.txt: no such file" in mistake(
        "--data_layer_params/source_file=nowhere.txt"
    )
    assert "nowhere.txt: no such file" in mistake(
        "--data_layer_params/src_vocab_file=nowhere.txt"
    )


def test_files_of_different_length_are_refused_with_both_counts(workplace):
    target = workplace / "data/toy-reversal/train/target.txt"
    target.write_text(target.read_text() + "one more\n")
    message = mistake()
    assert "300" in message and "301" in message


@pytest.mark.parametrize("mode", ["eval", "infer", "interactive_infer", "average"])
def test_without_a_checkpoint_nothing_can_be_used(workplace, mode):
    assert "no checkpoint" in mistake(f"--mode={mode}")
    assert not (workplace / "run").exists()


def test_a_run_is_not_overwritten(run):
    before = sorted(run.rglob("*"))
    assert "run is not empty" in mistake()
    assert "--resume=auto" in mistake("--resume=never", "--enable_logs")
    assert sorted(run.rglob("*")) == before


def test_there_must_be_a_run_to_resume(workplace):
    assert "no checkpoint to resume from" in mistake("--resume=must")
    assert "no checkpoint to resume from" in mistake("--continue_learning")
    assert not (workplace / "run").exists()


def test_a_vocabulary_of_another_size_is_refused_with_both_sizes(run):
    file = run.parent / "data/toy-reversal/vocabulary.txt"
    file.write_text(file.read_text() + "new\nsymbols\n")
    message = mistake("--resume=auto")
    assert "source vocabulary has 40 entries, that of the data 42" in message
    assert "target vocabulary has 40 entries, that of the data 42" in message


def test_a_model_of_another_size_is_refused_with_its_weights(run):
    message = mistake("--mode=eval", "--encoder_params/filter_size=24")
    assert "does not fit this model" in message
    assert "(16, 16)" in message and "(16, 24)" in message


def test_a_damaged_checkpoint_is_refused(run):
    path = run / "checkpoints/step-0000030.safetensors"
    path.write_bytes(path.read_bytes()[:1000])
    assert "cannot read the checkpoint" in mistake(
        "--mode=eval", f"--checkpoint={path}"
    )


def test_a_scale_stuck_at_its_floor_names_the_way_out(workplace):
    message = mistake(
        "--dtype=mixed",
        "--loss_scaling=Backoff",
        "--loss_scaling_params/scale_init=1e38",
        "--loss_scaling_params/scale_max=1e38",
        "--loss_scaling_params/scale_min=1e38",
        "--print_loss_steps=1",
        "--max_steps=3",
    )
    assert "step 1 overflows at the lowest loss scale" in message
    assert "mixed_bfloat16" in message


def test_a_failure_inside_shows_where(workplace, monkeypatch):
    def fail(self):
        raise RuntimeError("a failure inside")

    monkeypatch.setattr(Trainer, "run", fail)
    outcome = toy.oseq(*TINY)
    assert outcome.code == 1
    assert "Traceback" in outcome.err
    assert "RuntimeError: a failure inside" in outcome.err


def test_in_a_process_a_mistake_is_all_that_is_said(workplace):
    outcome = toy.in_process(*TINY, "--mode=eval")
    assert outcome == (2, "", "oseq: error: no checkpoint in run/checkpoints\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--random_seed=-1"], "must be at least 0"),
        (["--random_seed=99999999999"], "must be below"),
        (["--early_stopping_metric=loss"], "nothing stops without"),
        (["--max_grad_norm=0"], "None switches clipping off"),
        (["--encoder_params/num_heads=3"], "not divisible by num_heads 3"),
        (["--encoder_params/hidden_size=32"], "share_embeddings"),
        (["--encoder_params/norm_params/epsilon=-1"], "must be above 0"),
        (["--hooks=[collections.OrderedDict]"], "OrderedDict is no"),
        (["--data_layer_params/source_file=[]"], "no file is named"),
        (["--data_layer_params/cache_dir=/proc/nowhere"], "cache_dir: /proc/nowhere"),
        (["--data_layer_params/seed=3"], "base_params want 1 (random_seed)"),
        (["--data_layer_params/batch_size=3"], "base_params want 16"),
        (["--logdir=data/toy-reversal/vocabulary.txt"], "cannot make"),
        (
            ["--mode=train_eval", "--eval_steps=1", "--best_metric=WER"],
            "'WER' is not reported; choose one of loss, perplexity, BLEU",
        ),
    ],
)
def test_a_value_that_cannot_work_is_named_before_the_first_update(
    workplace, arguments, message
):
    assert message in mistake(*arguments)


def test_data_that_is_not_repeated_ends_the_run_in_peace(workplace):
    outcome = toy.succeed(
        *TINY, "--data_layer_params/repeat=False", "--batch_size_per_gpu=100"
    )
    assert "stopping at step 3: the data has ended" in outcome.err
    assert toy.newest("run").header.step == 3

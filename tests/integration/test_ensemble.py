"""Several trained models that answer as one, by the command."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.integration import toy

TINY = (*toy.TINY, "--logdir=run")
PAIRS = {"in.txt": "1 2 3 a\nb c d\n9 8 7 6 5\n", "out.txt": "a 3 2 1\nd c b\n5 6\n"}
WIDER = (
    "--encoder_params/hidden_size=24",
    "--decoder_params/hidden_size=24",
    "--decoder_params/num_hidden_layers=2",
    "--dtype=mixed_bfloat16",
)


@pytest.fixture
def pairs(run):
    for name, text in PAIRS.items():
        (run.parent / name).write_text(text)
    return run.parent


def train(*arguments):
    toy.succeed(*toy.TINY, "--max_steps=5", *arguments)


def infer(*arguments, **options):
    command = (*TINY, "--mode=infer", "--infer_output_file=-")
    return toy.succeed(*command, "--infer_input_file=in.txt", *arguments, **options)


def score(*arguments):
    """Returns the log-probabilities of the pairs."""
    files = ("--infer_input_file=in.txt", "--score_target_file=out.txt")
    command = (*TINY, "--mode=score", "--infer_output_file=-", *files)
    lines = toy.succeed(*command, *arguments).out.splitlines()
    return np.array([float(line.split("\t")[0]) for line in lines])


def test_checkpoints_of_one_run_answer_together(pairs):
    earlier = "run/checkpoints/step-0000010.safetensors"
    outcome = infer(f"--ensemble={earlier}", "--search_params/beam_size=2")
    assert outcome.out.count("\n") == 3
    assert "restored the weights of run/checkpoints/step-0000030" in outcome.err
    assert f"restored the weights of {earlier}" in outcome.err

    one, other = score(), score(f"--checkpoint={earlier}")
    together = score(f"--ensemble={earlier}")
    # The mean of probabilities is above the mean of their logarithms.
    assert (together > (one + other) / 2).all()
    np.testing.assert_allclose(
        score(f"--ensemble={earlier}", f"--checkpoint={earlier}"), other, rtol=1e-5
    )


def test_a_member_of_another_architecture_joins_in_every_mode(pairs):
    train("--logdir=wide", *WIDER)
    translated = infer("--ensemble=wide", "--attention_file=attention.json").out
    assert Path("attention.json").read_text().count("attention") == 3
    typed = toy.succeed(
        *TINY,
        "--mode=interactive_infer",
        "--ensemble=wide/checkpoints",
        stdin=PAIRS["in.txt"].encode(),
    )
    assert typed.out == translated
    judged = toy.succeed(*TINY, "--mode=eval", "--ensemble=wide")
    assert toy.metrics(judged).keys() >= {"loss", "BLEU"}


def test_phrases_and_prefixes_hold_for_an_ensemble(pairs):
    Path("phrases.txt").write_text("3 a\t1\n\nc\n")
    Path("prefixes.txt").write_text("a\nd d\n\n")
    demands = (
        "--ensemble=run/checkpoints/step-0000010.safetensors",
        "--search_params/beam_size=3",
        "--data_layer_params/phrases_file=phrases.txt",
        "--data_layer_params/prefix_file=prefixes.txt",
    )
    outcome = infer(*demands, "--search=oseq.search.ConstrainedBeamSearch")
    first, second, third = outcome.out.splitlines()
    assert first.startswith("a") and "3 a" in first and "1" in first
    assert second.startswith("d d")
    assert "c" in third

    refused = toy.oseq(*TINY, "--mode=infer", "--infer_input_file=in.txt", *demands)
    assert refused.code == 2
    assert "BeamSearch does not take phrases" in refused.err


def test_mistakes_are_found_before_any_work(pairs):
    outcome = toy.oseq(*TINY, "--mode=infer", "--ensemble=run,nowhere")
    assert outcome.code == 2
    assert "--ensemble: nowhere does not exist" in outcome.err

    outcome = toy.oseq(*TINY, "--mode=train", "--ensemble=run")
    assert outcome.code == 2
    assert "an ensemble is not trained" in outcome.err

    outcome = toy.oseq(*TINY, "--mode=infer", "--ensemble=data")
    assert outcome.code == 2
    assert "no checkpoint in data" in outcome.err


def test_a_checkpoint_without_its_run_is_refused(pairs):
    checkpoint = next(Path("run/checkpoints").iterdir())
    alone = checkpoint.rename(checkpoint.name)
    outcome = toy.oseq(*TINY, "--mode=infer", f"--ensemble={alone}")
    assert outcome.code == 2
    assert f"{alone}: no config.yaml" in outcome.err


def test_members_that_read_otherwise_are_refused_by_name(pairs):
    vocabulary = Path("data/toy-reversal/vocabulary.txt")
    lines = vocabulary.read_text().splitlines()
    other = Path("other.txt")
    other.write_text("\n".join([*lines[:-2], lines[-1], lines[-2]]) + "\n")
    sides = [
        f"--data_layer_params/{side}_vocab_file=other.txt" for side in ("src", "tgt")
    ]
    train("--logdir=other", *sides)
    outcome = toy.oseq(*TINY, "--mode=infer", "--ensemble=other")
    assert outcome.code == 2
    assert "other/checkpoints/step-0000005" in outcome.err
    assert "run/checkpoints/step-0000030" in outcome.err
    assert "tokenizers or vocabularies" in outcome.err

"""What each mode of the command makes of a trained model."""

from __future__ import annotations

import pytest

from oseq.training import checkpoint as checkpoints
from tests.integration import toy

TINY = (*toy.TINY, "--logdir=run")
# Line n of the output answers line n of the input, whatever the lines hold.
ODD_LINES = (
    b"1 2 3 a\n\nb c d\r\n   \nx\xe2\x80\xa8y 4 5\n\xe3\x80\x80\n"
    + b"1 " * 400
    + b"\n\x0c 7 8\r9\nunknown <S> <EOS> words\n\x1c\xc2\x85\nl a s t"
)
NUM_LINES = 11
BLANK = {1, 3, 5, 9}


@pytest.fixture
def odd_lines(workplace):
    file = workplace / "odd.txt"
    file.write_bytes(ODD_LINES)
    return file


def test_eval_judges_the_newest_checkpoint(run):
    outcome = toy.succeed(*TINY, "--mode=eval")
    assert "restored the weights of run/checkpoints/step-0000030" in outcome.err
    assert set(toy.metrics(outcome)) == {
        "loss",
        "perplexity",
        "BLEU",
        "chrF",
        "exact_match",
    }


def test_every_line_is_answered_by_a_line_at_any_batch_size(run, odd_lines):
    outputs = []
    for batch_size in (1, 3, 64):
        toy.succeed(
            *TINY,
            "--mode=infer",
            f"--batch_size_per_gpu={batch_size}",
            "--infer_input_file=odd.txt",
            "--infer_output_file=out.txt",
            "--data_layer_params/max_length=40",
        )
        outputs.append((run.parent / "out.txt").read_bytes())
    first, *others = outputs
    assert others == [first, first]
    lines = first.decode().split("\n")
    assert lines.pop() == ""
    assert len(lines) == NUM_LINES
    assert {number for number, line in enumerate(lines) if not line} >= BLANK
    assert not (run.parent / "out.txt.partial").exists()


def test_a_pipe_is_answered_as_a_file_is(run, odd_lines):
    arguments = (*TINY, "--mode=infer", "--infer_output_file=-")
    from_file = toy.succeed(*arguments, "--infer_input_file=odd.txt")
    piped = toy.in_process(*arguments, "--infer_input_file=-", stdin=ODD_LINES)
    assert piped.code == 0, piped.err
    assert piped.out == from_file.out
    assert piped.out.count("\n") == NUM_LINES
    assert piped.err.splitlines()[-1].startswith("restored the weights of")


def test_the_prompt_answers_line_by_line_what_infer_answers(run, odd_lines):
    toy.succeed(*TINY, "--mode=infer", "--infer_input_file=odd.txt")
    process = toy.start_process(*TINY, "--mode=interactive_infer", stdin=-1)
    answers = []
    with process:
        for line in ODD_LINES.split(b"\n"):
            process.stdin.write(line + b"\n")
            process.stdin.flush()
            answers.append(process.stdout.readline())
        rest, _ = process.communicate()
    assert process.returncode == 0
    assert rest == b""
    assert b"".join(answers) == (run.parent / "infer-out.txt").read_bytes()


def test_an_empty_input_makes_an_empty_output(run):
    for text, lines in ((b"", 0), (b"\n\n", 2)):
        outcome = toy.succeed(
            *TINY,
            "--mode=infer",
            "--infer_input_file=-",
            "--infer_output_file=-",
            stdin=text,
        )
        assert outcome.out == "\n" * lines


def test_n_best_lists_name_their_lines(run, odd_lines):
    outcome = toy.succeed(
        *TINY,
        "--mode=infer",
        "--infer_input_file=odd.txt",
        "--infer_output_file=-",
        "--search_params/beam_size=4",
        "--search_params/num_best=3",
    )
    fields = [line.split(" ||| ") for line in outcome.out.splitlines()]
    expected = [str(n) for n in range(NUM_LINES) for _ in range(3)]
    assert [number for number, _, _ in fields] == expected
    scores = [float(score) for _, _, score in fields]
    for first in range(0, len(scores), 3):
        best, second, third = scores[first : first + 3]
        assert best >= second >= third


def test_an_average_of_checkpoints_can_be_used(run):
    outcome = toy.succeed(*TINY, "--mode=average", "--num_averaged_checkpoints=2")
    path = run.parent / "run" / "average" / "step-0000030.safetensors"
    assert "--checkpoint=run/average/step-0000030.safetensors" in outcome.err
    average = checkpoints.read(path).under("weights")
    last = checkpoints.read(run / "checkpoints/step-0000030.safetensors")
    before = checkpoints.read(run / "checkpoints/step-0000020.safetensors")
    assert average.keys() == last.under("weights").keys()
    for name, value in average.items():
        mean = (last.under("weights")[name] + before.under("weights")[name]) / 2
        assert value == pytest.approx(mean, abs=1e-6)

    evaluated = toy.succeed(*TINY, "--mode=eval", f"--checkpoint={path}")
    assert f"restored the weights of {path}" in evaluated.err
    assert toy.metrics(evaluated) != toy.metrics(toy.succeed(*TINY, "--mode=eval"))


def test_the_best_checkpoint_serves_where_it_is_asked_for(run):
    toy.succeed(
        *TINY,
        "--mode=train_eval",
        "--resume=must",
        "--eval_steps=1",
        "--best_metric=loss",
        "--lr_policy=oseq.optimizers.lr_policies.fixed_lr",
        "--lr_policy_params={'learning_rate': 1.0}",
        "--max_steps=33",
    )
    # The learning rate is absurd: no later step is better.
    (best,) = checkpoints.newest_first(run / "best")
    assert checkpoints.step_of(best) == 31
    newest = toy.succeed(*TINY, "--mode=eval")
    asked = toy.succeed(*TINY, "--mode=eval", "--restore_best_checkpoint=True")
    assert "checkpoints/step-0000033" in newest.err
    assert "best/step-0000031" in asked.err
    assert toy.metrics(asked)["loss"] < toy.metrics(newest)["loss"]

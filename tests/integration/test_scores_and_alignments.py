"""What a trained model says beside its translations, by the command."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.integration import toy

TINY = (*toy.TINY, "--logdir=run")
# Blank on one side or both, odd space, unknown symbols, one line that is very long.
SOURCES = ["1 2 3 a", "", "b c d", "   ", "x\u2028y 4 5", "1 " * 400, "<S> hm", "l a s"]
TARGETS = ["a 3 2 1", "b a", "", "\u3000", "5 4", "a b c", "1 " * 300, "<EOS>"]


@pytest.fixture
def pairs(run):
    for name, lines in (("in.txt", SOURCES), ("out.txt", TARGETS)):
        content = "".join(line + "\n" for line in lines)
        (run.parent / name).write_bytes(content.encode())
    return run.parent


def score(*arguments, **options):
    """Returns the log-probabilities and the numbers of tokens, line by line."""
    outcome = toy.succeed(
        *TINY, "--mode=score", "--infer_output_file=-", *arguments, **options
    )
    lines = [line.split("\t") for line in outcome.out.splitlines()]
    assert all(len(number.partition(".")[2]) == 6 for number, _ in lines)
    return [float(number) for number, _ in lines], [int(count) for _, count in lines]


def test_every_pair_is_scored_whole_in_its_place_at_any_batch_size(pairs):
    files = ("--infer_input_file=in.txt", "--score_target_file=out.txt")
    outputs = [
        score(
            *files, f"--batch_size_per_gpu={size}", "--data_layer_params/max_length=9"
        )
        for size in (1, 3, 64)
    ]
    for log_probabilities, counts in outputs:
        assert counts == [5, 3, 1, 1, 3, 4, 301, 2]
        assert all(value < 0 for value in log_probabilities)
        np.testing.assert_allclose(log_probabilities, outputs[0][0], rtol=1e-5)
    assert not (pairs / ".oseq_cache").exists()


def test_one_side_may_come_through_a_pipe(pairs):
    from_files = score("--infer_input_file=in.txt", "--score_target_file=out.txt")
    piped = score(
        "--infer_input_file=in.txt",
        "--score_target_file=-",
        stdin=(pairs / "out.txt").read_bytes(),
    )
    assert piped == from_files


def test_the_config_names_the_files_where_the_flags_do_not(run):
    target = "data/toy-reversal/test/target.txt"
    _, counts = score(f"--data_layer_params/target_file={target}")
    lines = (run.parent / target).read_text().splitlines()
    assert counts == [len(line.split()) + 1 for line in lines]
    outcome = toy.oseq(*TINY, "--mode=score")
    assert outcome.code == 2 and "target_file: missing in score" in outcome.err


def test_files_of_different_length_are_refused_with_both_counts(pairs):
    outcome = toy.oseq(
        *TINY,
        "--mode=score",
        "--infer_input_file=in.txt",
        "--score_target_file=data/toy-reversal/test/target.txt",
    )
    assert outcome.code == 2
    assert "source and target differ in lines: 8 in in.txt, but 20 in" in outcome.err
    assert not (pairs / "infer-out.txt").exists()


def test_a_translation_has_the_score_that_the_search_found_it_with(run):
    outcome = toy.succeed(
        *TINY,
        "--mode=infer",
        "--infer_output_file=-",
        "--search_params/beam_size=4",
        "--search_params/num_best=2",
        "--search_params/alpha=0.0",
    )
    found = [line.split(" ||| ") for line in outcome.out.splitlines()]
    source = run.parent / "data/toy-reversal/test/source.txt"
    sources = source.read_text().splitlines()
    again = "".join(sources[int(number)] + "\n" for number, _, _ in found)
    (run.parent / "in.txt").write_text(again)
    (run.parent / "out.txt").write_text("".join(text + "\n" for _, text, _ in found))

    scores, _ = score("--infer_input_file=in.txt", "--score_target_file=out.txt")

    assert len(scores) == 2 * len(sources)
    said = [float(text) for _, _, text in found]
    np.testing.assert_allclose(scores, said, atol=2e-4)  # said to four digits


@pytest.mark.parametrize("num_best", [1, 2])
def test_every_hypothesis_has_a_line_of_links_and_of_attention(pairs, num_best):
    outcome = toy.succeed(
        *TINY,
        "--mode=infer",
        "--infer_input_file=in.txt",
        "--infer_output_file=-",
        "--alignment_file=links.txt",
        "--attention_file=attention.jsonl",
        "--data_layer_params/max_length=9",
        "--search_params/beam_size=3",
        f"--search_params/num_best={num_best}",
    )
    outputs = outcome.out.split("\n")
    links, lines = (
        (pairs / name).read_bytes().decode().split("\n")
        for name in ("links.txt", "attention.jsonl")
    )
    assert [each.pop() for each in (outputs, links, lines)] == [""] * 3
    assert len(outputs) == len(links) == len(lines) == len(SOURCES) * num_best
    for number, (output, pharaoh, line) in enumerate(
        zip(outputs, links, lines, strict=True)
    ):
        words = SOURCES[number // num_best].split()[:8]  # EOS is the ninth token
        text = output if num_best == 1 else output.split(" ||| ")[1]
        found = [tuple(map(int, link.split("-"))) for link in pharaoh.split()]
        assert [target for _, target in found] == list(range(len(text.split())))
        assert all(source < len(words) for source, _ in found)
        content = json.loads(line)
        assert "".join(content["target"]) == text
        assert "".join(content["source"]).split() == words
        shape = (len(content["target"]), len(content["source"]))
        attention = np.array(content["attention"]).reshape(shape)  # no column for EOS
        assert np.all(attention.sum(axis=1) <= 1.001)


@pytest.fixture
def only_unknown(pairs):
    """Flags of a search that puts out nothing but UNK."""
    vocabulary = pairs / "data/toy-reversal/vocabulary.txt"
    known = list(range(4, len(vocabulary.read_text().splitlines())))
    return f"--search_params/forbidden_ids={known}", "--search_params/min_length=2"


def test_source_words_take_the_place_of_unknown_words(only_unknown):
    arguments = (
        *(*TINY, "--mode=infer", *only_unknown),
        *("--infer_input_file=in.txt", "--infer_output_file=-"),
    )
    plain = toy.succeed(*arguments)
    replaced = toy.succeed(*arguments, "--data_layer_params/replace_unknown=True")
    lines = [outcome.out.split("\n") for outcome in (plain, replaced)]
    for source, before, after in zip([*SOURCES, ""], *lines, strict=True):
        assert set(before.split()) == ({"<UNK>"} if source.strip() else set())
        assert len(before.split()) == len(after.split())
        assert set(after.split()) <= set(source.split())
    assert "<S>" in replaced.out or "hm" in replaced.out


def test_evaluation_judges_what_infer_would_put_out(only_unknown):
    arguments = (*TINY, "--mode=eval", *only_unknown)
    plain = toy.succeed(*arguments)
    replaced = toy.succeed(*arguments, "--data_layer_params/replace_unknown=True")
    assert toy.metrics(plain)["chrF"] < toy.metrics(replaced)["chrF"]

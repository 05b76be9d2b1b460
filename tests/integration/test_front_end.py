"""A trained model reads text as it was trained to, whatever became of the files."""

from __future__ import annotations

import pytest

from tests.integration import toy

TINY = (*toy.TINY, "--logdir=run")
VOCABULARY = "data/toy-reversal/vocabulary.txt"


@pytest.fixture
def infer():
    def answers(*arguments):
        outcome = toy.succeed(
            *TINY, "--mode=infer", "--infer_output_file=-", *arguments
        )
        return outcome.out, outcome.err

    return answers


def test_an_unchanged_config_gives_no_warning(run, infer):
    _, said = infer()
    assert "warning" not in said


def test_the_vocabulary_may_change_or_go_after_training(run, infer):
    expected, _ = infer()
    before = toy.metrics(toy.succeed(*TINY, "--mode=eval"))
    file = run.parent / VOCABULARY

    *special, first, second = file.read_text().splitlines()
    file.write_text("\n".join([*special, second, first, "new"]) + "\n")
    assert infer()[0] == expected

    file.unlink()
    assert infer()[0] == expected
    assert toy.metrics(toy.succeed(*TINY, "--mode=eval")) == before


def test_another_front_end_in_the_config_is_overruled_aloud(run, infer):
    expected, _ = infer()
    other = run.parent / "other.txt"
    other.write_text("<PAD>\n<EOS>\n<S>\n<UNK>\na\n")
    answers, said = infer(
        "--data_layer_params/src_vocab_file=other.txt",
        "--data_layer_params/delimiter=,",
    )
    assert answers == expected
    assert "warning: data_layer_params/src_vocab_file is 'other.txt' here" in said
    assert "warning: data_layer_params/delimiter is ',' here" in said


def test_a_subword_model_is_trained_kept_and_used_without_its_file(workplace):
    subwords = (
        "--data_layer_params/src_vocab_file=None",
        "--data_layer_params/tgt_vocab_file=None",
        "--data_layer_params/sentencepiece_model=subwords.model",
        "--data_layer_params/sentencepiece_vocab_size=300",
    )
    toy.succeed(*TINY, *subwords, "--max_steps=2")
    (workplace / "subwords.model").unlink()
    toy.succeed(*TINY, *subwords, "--mode=infer")
    assert (workplace / "infer-out.txt").read_text().count("\n") == 20

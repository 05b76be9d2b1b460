"""Config files in the style of OpenSeq2Seq run as they are, and in native form."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest
import tensorflow as tf

from oseq.compat import __main__ as converter
from oseq.compat.load import load_old_config
from oseq.config.loader import load_config
from oseq.ngram.arpa import write_arpa
from oseq.ngram.estimate import estimate
from tests.integration import toy
from tests.integration.toy_speech import write_speech
from tests.unit.compat.old import comparable

OLD_CONFIGS = Path(__file__).parent / "old_configs"
CONFIGS = sorted(
    path for path in OLD_CONFIGS.glob("*.py") if not path.stem.startswith("old_")
)
TEXT = [path for path in CONFIGS if not path.stem.startswith("speech_")]
SPEECH = [path for path in CONFIGS if path.stem.startswith("speech_")]


@pytest.fixture
def data(workplace: Path) -> Path:
    """The toy corpus as every config here wants it."""
    corpus = workplace / "data/toy-reversal"
    tokens = (corpus / "vocabulary.txt").read_text().splitlines()
    (corpus / "plain_vocabulary.txt").write_text("\n".join(tokens[4:]) + "\n")
    _write_records(corpus, workplace / "records", tokens[4:])
    return workplace


def _write_records(corpus: Path, folder: Path, tokens: list[str]) -> None:
    """Writes what the old scripts make of the corpus: two shards, and subwords."""
    subwords = ["<pad>", "<EOS>", *(f"{token}_" for token in tokens)]
    ids = {subword[0]: i for i, subword in enumerate(subwords) if i > 1}
    # Each character by itself, and what a text is escaped with.
    subwords += [*tokens, *"_\\;"]
    folder.mkdir()
    (folder / "vocab.ende").write_text("".join(f"'{each}'\n" for each in subwords))
    for name in ("train", "valid", "test"):
        sides = [
            (corpus / name / f"{side}.txt").read_text().splitlines()
            for side in ("source", "target")
        ]
        for shard in range(2):
            path = str(folder / f"{name}-0000{shard}-of-00002")
            with tf.io.TFRecordWriter(path) as writer:
                for pair in list(zip(*sides, strict=True))[shard::2]:
                    writer.write(
                        _record(*([ids[t] for t in line.split()] for line in pair))
                    )


def _record(source: list[int], target: list[int]) -> bytes:
    def feature(ids: list[int]) -> tf.train.Feature:
        return tf.train.Feature(int64_list=tf.train.Int64List(value=[*ids, 1]))

    features = {"inputs": feature(source), "targets": feature(target)}
    example = tf.train.Example(features=tf.train.Features(feature=features))
    return example.SerializeToString()


@pytest.fixture
def speech(workplace: Path) -> Path:
    """Utterances and the words in them as every config of speech wants them."""
    write_speech(workplace / "speech", train=4, valid=2)
    words = [["bad", "ebb"], ["abc", "dab"], ["cede"]]
    write_arpa(estimate(words, 2), "speech/words.arpa")
    return workplace


def _convert(old: Path, new: Path) -> str:
    """Runs ``python -m oseq.compat old > new``; returns what it says."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        assert converter.main([str(old)]) == 0, err.getvalue()
    new.write_text(out.getvalue())
    return err.getvalue()


@pytest.mark.parametrize("old", TEXT, ids=lambda path: path.stem)
def test_an_old_file_and_its_native_form_train_evaluate_and_infer_alike(data, old):
    new = data / "new.py"
    notes = _convert(old, new)

    of_old = toy.succeed("--mode=train_eval", config=old)
    toy.succeed("--mode=infer", "--infer_output_file=out.txt", config=old)
    of_new = toy.succeed("--mode=train", "--logdir=again", config=new)

    assert 1 in toy.losses(of_old)
    assert toy.losses(of_new) == toy.losses(of_old)
    assert {"BLEU", "chrF"} <= toy.metrics(of_old).keys()
    toy.assert_same_state(toy.newest("again"), toy.newest("run"))
    assert len(Path("out.txt").read_text().splitlines()) == 20
    _check_forms(old, new, notes, of_old, of_new)


@pytest.mark.parametrize("old", SPEECH, ids=lambda path: path.stem)
def test_an_old_file_for_speech_trains_what_its_native_form_evaluates(speech, old):
    new = speech / "new.py"
    notes = _convert(old, new)

    of_old = toy.succeed("--mode=train_eval", config=old)
    toy.succeed("--mode=infer", "--infer_output_file=out.txt", config=old)
    of_new = toy.succeed("--mode=eval", config=new)

    assert 1 in toy.losses(of_old)
    (before,), (after,) = (
        re.findall(r"loss [\d.]+, .*WER .*", each.err) for each in (of_old, of_new)
    )
    assert after == before
    assert len(Path("out.txt").read_text().splitlines()) == 2
    _check_forms(old, new, notes, of_old, of_new)


def _check_forms(old: Path, new: Path, notes: str, *outcomes: toy.Outcome) -> None:
    """Checks that both forms say the same, and that the log of the old one says so."""
    of_old, of_new = outcomes
    lines = [line for line in notes.splitlines() if line]
    assert [line for line in lines if f"compat: {line}" not in of_old.err] == []
    assert "compat: " not in of_new.err
    of_files = load_config(new), load_old_config(old).config
    for mode in ("train", "eval", "infer"):
        params, others = (comparable(each.params(mode)) for each in of_files)
        assert params == others


def test_the_converter_refuses_what_it_cannot_write(tmp_path, capsys):
    old = tmp_path / "old.py"
    old.write_text(
        "from open_seq2seq.models import Text2Text as base_model\n"
        "def policy(global_step): return 0.1\n"
        "base_params = {'lr_policy': policy}\n"
    )

    assert converter.main([str(old)]) == 2

    assert "base_params/lr_policy: <function" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import oseq", "imports nothing of OpenSeq2Seq's"),
        (None, "no such file"),
        (
            "from open_seq2seq.models import LSTMLM as base_model\nbase_params = {}",
            "LSTMLM has no counterpart yet (language models)",
        ),
    ],
)
def test_the_converter_says_what_is_wrong(tmp_path, capsys, text, message):
    old = tmp_path / "old.py"
    if text is not None:
        old.write_text(text)

    assert converter.main([str(old)]) == 2

    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.out == ""


def test_the_command_line_lists_everything_without_a_counterpart(tmp_path):
    old = tmp_path / "old.py"
    old.write_text(
        "from open_seq2seq.models import Image2Label as base_model\n"
        "base_params = {'hooks': [type], 'max_setps': 3}\n"
    )

    outcome = toy.oseq(config=old)

    assert outcome.code == 2
    assert "Image2Label has no counterpart yet (images)" in outcome.err
    assert "base_params/hooks: session hooks cannot run" in outcome.err
    assert "base_params/max_setps: unknown key; did you mean max_steps?" in outcome.err
    assert "Traceback" not in outcome.err


def test_openseq2seqs_debug_port_is_answered(tmp_path):
    outcome = toy.oseq("--debug_port=6064", config=OLD_CONFIGS / "gnmt.py")

    assert outcome.code == 2
    assert "--debug_port: TensorFlow 2 has no session to debug" in outcome.err

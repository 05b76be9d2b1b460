"""Mode export as a user runs it, and the result as a server uses it."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import yaml

from oseq.export import saved_model
from tests.integration import toy

ARGUMENTS = (*toy.TINY, "--logdir=run", "--mode=export")
# What a user's program does: nothing of oseq's is to be found.
PROGRAM = """
import json, sys
sys.modules["oseq"] = None
import tensorflow as tf
signatures = tf.saved_model.load(sys.argv[1]).signatures
found = [
    signatures["serving_default"](text=tf.constant(lines, tf.string))
    for lines in json.load(sys.stdin)
]
json.dump(
    [
        {
            "text": [[x.decode() for x in row] for row in each["text"].numpy()],
            "score": each["score"].numpy().tolist(),
        }
        for each in found
    ],
    sys.stdout,
)
"""
LINES = ["1 2 3 a", "", "b c d", " \u3000", "l a s t", "1 " * 60, "no <S> word"]


def translate_elsewhere(folder, *batches):
    """Returns what a program that has no oseq gets for some batches of lines."""
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM, folder],
        input=json.dumps(batches),
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout)


class Exported(NamedTuple):
    folder: Path
    log: list[str]
    answers: list[str]  # to LINES in infer mode


def export_and_infer(place, trained, corpus, dtype):
    """Exports a trained run in ``place`` and lets infer mode answer LINES."""
    shutil.copytree(corpus, place / "data" / "toy-reversal")
    shutil.copytree(trained, place / "run")
    (place / "lines.txt").write_text("\n".join(LINES) + "\n")
    same = (*toy.TINY, "--logdir=run", f"--dtype={dtype}", "--batch_size_per_gpu=4")
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.chdir(place)
        export = toy.succeed(*same, "--mode=export", "--export_dir=models/toy/7")
        infer = toy.succeed(
            *same,
            "--mode=infer",
            "--infer_input_file=lines.txt",
            "--infer_output_file=-",
        )
    folder = place / "models" / "toy" / "7"
    return Exported(folder, export.err.splitlines(), infer.out.split("\n")[:-1])


@pytest.fixture(scope="module")
def exported(_trained, corpus, tmp_path_factory):
    return export_and_infer(tmp_path_factory.mktemp("e"), _trained, corpus, "float32")


def assert_answers_as_infer(exported):
    together, *alone, nothing = translate_elsewhere(
        exported.folder, LINES, *([line] for line in LINES), []
    )
    assert together["text"] == [[line] for line in exported.answers]
    assert together["score"][1] == together["score"][3] == [0.0]
    assert [each["text"][0] for each in alone] == together["text"]
    assert nothing == {"text": [], "score": []}


def test_a_program_without_oseq_answers_as_infer_does(exported):
    assert_answers_as_infer(exported)


def test_the_program_of_the_readme_runs(exported, tmp_path):
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    (program,) = re.findall(r"```python\n(import tensorflow.*?)```", readme, re.DOTALL)
    (tmp_path / "models" / "en-de").mkdir(parents=True)
    (tmp_path / "models" / "en-de" / "1").symlink_to(exported.folder)
    process = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    assert [line.split(" -> ")[0] for line in process.stdout.splitlines()] == [
        "A man is riding a bike.",
        "Two dogs play in the snow.",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["mixed_bfloat16", "mixed"])
def test_so_do_exports_with_16_bit_weights(_trained, corpus, tmp_path, dtype):
    exported = export_and_infer(tmp_path, _trained, corpus, dtype)
    assert_answers_as_infer(exported)
    metadata = yaml.safe_load((exported.folder / "export.yaml").read_text())
    expected = {"mixed_bfloat16": "bfloat16", "mixed": "float16"}[dtype]
    assert metadata["weights"]["dtype"] == expected


def test_the_log_says_what_was_compared_and_where_the_export_is(exported):
    assert exported.log[-2:] == [
        "comparing 20 answers with the checkpoint's",
        "exported to models/toy/7",
    ]


def test_the_metadata_say_what_was_exported(exported):
    found = yaml.safe_load((exported.folder / "export.yaml").read_text())
    assert found["format"] == "saved_model"
    assert found["signatures"]["translate"] == {
        "inputs": {"text": "string [None]"},
        "outputs": {"text": "string [None, 1]", "score": "float32 [None, 1]"},
    }
    assert found["signatures"]["translate_ids"] == {
        "inputs": {"ids": "int32 [None, None]", "length": "int32 [None]"},
        "outputs": {
            "ids": "int32 [None, 1, None]",
            "length": "int32 [None, 1]",
            "score": "float32 [None, 1]",
        },
    }
    assert found["checkpoints"][0]["step"] == 30
    assert found["weights"]["dtype"] == "float32"
    assert len(found["weights"]["sha256"]) == 64
    assert set(found["versions"]) >= {"oseq", "tensorflow", "tensorflow-text", "keras"}
    assert found["config"]["train_params"]["batch_size_per_gpu"] == 4


def test_the_vocabulary_is_an_asset_and_nothing_else_is_left(exported):
    asset = exported.folder / "assets" / "joint.vocabulary.txt"
    vocabulary = exported.folder.parents[2] / "data/toy-reversal/vocabulary.txt"
    assert asset.read_text().split() == vocabulary.read_text().split()[4:]
    assert list(exported.folder.parent.iterdir()) == [exported.folder]


def inputs_of(request):
    """Returns a request's batch as TensorFlow Serving's documentation of REST says.

    "instances" are rows: values of the one input, or objects that name it. "inputs"
    are columns, by name.
    """
    if "inputs" in request:
        return request["inputs"]["text"]
    rows = request["instances"]
    return [row["text"] for row in rows] if isinstance(rows[0], dict) else rows


def test_rest_requests_and_answers_of_the_page_fit_the_signature(exported):
    page = (toy.REPOSITORY / "docs" / "export.md").read_text()
    bodies = map(json.loads, re.findall(r"```json\n(.*?)```", page, re.DOTALL))
    by_value, by_name, predictions, by_column, outputs = bodies
    requests = (by_value, by_name, by_column)
    assert {request["signature_name"] for request in requests} == {"translate"}
    found, *others = translate_elsewhere(exported.folder, *map(inputs_of, requests))
    assert others == [found, found]

    outputs = outputs["outputs"]
    assert outputs.keys() == found.keys()
    for name, value in outputs.items():
        assert np.shape(value) == np.shape(found[name])
        rows = [prediction[name] for prediction in predictions["predictions"]]
        assert rows == value


def test_saved_model_cli_shows_and_runs_it(exported):
    cli = ["-c", "from tensorflow.python.tools import saved_model_cli as c; c.main()"]
    given = ["--dir", exported.folder, "--tag_set", "serve"]
    line = ["--signature_def", "translate", "--input_exprs", "text=['1 2 3 a', '']"]
    outputs = [
        subprocess.run([sys.executable, *cli, *arguments], capture_output=True)
        for arguments in (
            ["show", "--dir", exported.folder, "--all"],
            ["run", *given, *line],
        )
    ]
    shown, run = (output.stdout.decode() for output in outputs)
    for name in ("serving_default", "translate", "translate_ids"):
        assert f"signature_def['{name}']" in shown
    assert repr([exported.answers[0].encode()]) in run


def test_an_export_that_answers_otherwise_is_refused_and_removed(run, monkeypatch):
    write = saved_model.export_saved_model

    def write_other_weights(model, data_layer, folder):
        details = write(model, data_layer, folder)
        weight = max(model.trainable_variables, key=lambda each: np.prod(each.shape))
        weight.assign(-weight.value)  # the checkpoint's answers are another's now
        return details

    monkeypatch.setattr(saved_model, "export_saved_model", write_other_weights)
    outcome = toy.oseq(*ARGUMENTS, "--export_dir=export")
    assert outcome.code == 2
    assert re.search(r"export.partial: line \d+ of the sample, translate", outcome.err)
    assert not list(run.parent.glob("export*"))


def test_an_export_that_cannot_be_loaded_is_refused_and_removed(run, monkeypatch):
    write = saved_model.export_saved_model

    def write_half(model, data_layer, folder):
        details = write(model, data_layer, folder)
        (folder / "variables" / "variables.index").unlink()
        return details

    monkeypatch.setattr(saved_model, "export_saved_model", write_half)
    outcome = toy.oseq(*ARGUMENTS, "--export_dir=export")
    assert outcome.code == 2
    assert "export.partial cannot be used:" in outcome.err
    assert not list(run.parent.glob("export*"))


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGKILL])
def test_an_export_that_is_stopped_leaves_nothing_that_looks_finished(run, kind):
    process = toy.start_process(*ARGUMENTS, "--export_dir=export")
    with process:
        for line in process.stderr:
            if line.startswith(b"comparing"):
                break
        process.send_signal(kind)
        process.communicate()  # or it would write its last words into a closed pipe
    assert process.returncode == (130 if kind == signal.SIGINT else -kind)
    assert not (run.parent / "export").exists()
    is_left = (run.parent / "export.partial").exists()
    assert is_left == (kind == signal.SIGKILL)


def test_without_text_to_compare_some_is_made_up(run):
    outcome = toy.succeed(
        *ARGUMENTS,
        "--export_dir=export",
        "--data_layer_params/source_file=nowhere.txt",
    )
    assert "comparing 32 answers" in outcome.err


@pytest.mark.parametrize(
    "arguments, message",
    [
        ((), "--export_dir: missing; it names the folder to be written"),
        (("--export_dir=run",), "--export_dir: run is not empty"),
        (("--export_dir=data/toy-reversal/vocabulary.txt",), "is no directory"),
        (("--export_dir=x", "--export_format=onnx"), "invalid choice: 'onnx'"),
        (("--export_dir=x", "--export_quantization=int8"), "only with --export_format"),
        (("--export_dir=x", "--logdir=empty"), "no checkpoint in empty"),
        (("--export_dir=x", "--mode=infer"), "--export_dir: not read in --mode=infer"),
    ],
)
def test_mistakes_are_named_before_any_work(run, arguments, message):
    outcome = toy.oseq(*ARGUMENTS, *arguments)
    assert outcome.code == 2
    assert message in outcome.err
    assert not (run.parent / "x").exists()

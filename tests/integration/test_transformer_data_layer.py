"""A model on records that OpenSeq2Seq's scripts have prepared, from run.py's view."""

from __future__ import annotations

import pytest

from oseq.data.subword_tokenizer import SubwordTokenizer
from tests.integration import toy
from tests.unit.data.records import example, write_records
from tests.unit.data.subwords import SUBWORDS, write_vocabulary

CONFIG = f"""
import runpy

from oseq.data.transformer_data_layer import TransformerDataLayer

toy = runpy.run_path({str(toy.CONFIG)!r})
base_model = toy["base_model"]
base_params = {{
    **toy["base_params"],
    "logdir": "run",
    "data_layer": TransformerDataLayer,
    "data_layer_params": {{"data_dir": "data", "src_vocab_file": "data/vocab.ende"}},
}}
train_params = {{
    "data_layer_params": {{"file_pattern": "*train*", "pad_data_to_eight": True}}
}}
eval_params = {{"data_layer_params": {{"file_pattern": "*dev*"}}}}
infer_params = {{"data_layer_params": {{"file_pattern": "*test*"}}}}
"""
END = [SUBWORDS.index("_")]  # of a run, which has no text
LINES = ["a b c", "abca ab. d", "", "e  g", "été _ 7", "cab"] * 5


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = tmp_path / "data"
    data.mkdir()
    tokenizer = SubwordTokenizer(write_vocabulary(data / "vocab.ende"))
    ids, offsets = tokenizer.encode_lines(LINES)
    rows = [ids[a:b] for a, b in zip(offsets[:-1], offsets[1:], strict=True)]
    records = [example(row, row[::-1]) for row in rows]
    for name in ("train-1-of-2", "train-2-of-2", "dev-1-of-1", "test-1-of-1"):
        write_records(data / f"wmt32k-{name}", records)
    (tmp_path / "in.txt").write_text("".join(f" {line}\n" for line in LINES))
    (tmp_path / "config.py").write_text(CONFIG)
    return tmp_path / "config.py"


def test_a_model_of_records_trains_and_translates_records_and_raw_text(config):
    def run(*arguments, **options):
        return toy.oseq(*toy.TINY, *arguments, config=config, **options)

    trained = run("--mode=train_eval", "--max_steps=6", "--eval_steps=6")
    assert trained.code == 0, trained.err
    assert "train: blank: 10 lines" in trained.err
    assert "BLEU" in trained.err

    # So that no answer is blank, though the model is hardly trained.
    words = ("--search_params/min_length=3", f"--search_params/forbidden_ids={END}")
    infer = ("--mode=infer", "--infer_output_file=-", *words)
    of_records = run(*infer)
    answers = of_records.out.splitlines()
    assert len(answers) == len(LINES)
    blank = [i for i, answer in enumerate(answers) if not answer]
    assert blank == [2, 8, 14, 20, 26]

    # The vocabulary and the records may be gone: the run has kept what it needs.
    for file in (config.parent / "data").iterdir():
        if file.is_file():
            file.unlink()
    of_text = run(*infer, "--infer_input_file=in.txt")
    assert of_text.out == of_records.out, of_text.err
    typed = run("--mode=interactive_infer", *words, stdin=f"{LINES[0]}\n".encode())
    assert typed.out.splitlines() == answers[:1], typed.err

    export = ("--mode=export", "--export_dir=exported")
    for kind in ("saved_model", "ctranslate2"):
        refused = run(*export, f"--export_format={kind}")
        assert refused.code != 0
        assert "use --export_format=tflite" in refused.err

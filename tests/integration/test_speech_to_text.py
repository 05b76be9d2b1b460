"""From audio files to words, by the command: trained, judged, transcribed, timed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import soundfile
import tensorflow as tf
import yaml

from oseq.export.streaming import StreamingTranscriber, StreamWindow
from tests.integration import toy
from tests.integration.toy_speech import write_speech

CONFIG = Path(__file__).parent / "tones_config.py"
SECONDS_OF_LETTER = 0.08


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A recognizer of tones: its directory, and what training said."""
    place = tmp_path_factory.mktemp("speech")
    write_speech(place / "speech", train=64, valid=12)
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.chdir(place)
        outcome = toy.succeed("--mode=train_eval", "--eval_steps=150", config=CONFIG)
    return place, outcome


@pytest.fixture
def place(trained, monkeypatch):
    monkeypatch.chdir(trained[0])
    return trained[0]


def transcripts_of(place):
    rows = (place / "speech/valid.csv").read_text().splitlines()[1:]
    return [row.split(",")[0] for row in rows], [row.split(",")[2] for row in rows]


def infer(*arguments):
    return toy.succeed("--mode=infer", *arguments, config=CONFIG)


def test_a_small_model_learns_to_transcribe(trained, place):
    _, outcome = trained

    assert float(re.findall(r"WER ([\d.]+)", outcome.err)[-1]) < 5
    assert re.search(r"speech s/s [\d,]+", outcome.err)
    curves = toy.curves("run")
    assert {"eval/WER", "eval/CER", "eval/samples", "eval/speech"} <= curves.keys()
    files, transcripts = transcripts_of(place)
    (sample, *_) = curves["eval/samples"][150]
    assert files[0] in sample.decode() and transcripts[0] in sample.decode()


def test_output_and_error_rate_do_not_depend_on_the_batch(place):
    outcomes = [
        toy.succeed("--mode=eval", f"--eval_batch_size_per_gpu={size}", config=CONFIG)
        for size in (1, 32)
    ]
    rates = [re.findall(r"[WC]ER [\d.]+", outcome.err) for outcome in outcomes]
    assert rates[0] == rates[1] and len(rates[0]) == 2

    texts = [
        infer("--infer_output_file=-", f"--eval_batch_size_per_gpu={size}").out
        for size in (1, 32)
    ]
    assert texts[0] == texts[1]


def test_every_line_of_a_list_is_answered_in_its_place(place):
    good = infer("--infer_input_file=speech/valid-0.wav", "--infer_output_file=-").out
    assert good.count("\n") == 1 and good.strip()
    names = ["valid-0.wav", "", "gone.wav", "valid.csv", "valid-0.wav"]
    listed = "".join(f"{name}\n" for name in names)
    Path("speech/list.txt").write_text(listed)

    outcome = infer("--infer_input_file=speech/list.txt", "--infer_output_file=-")

    assert outcome.out == good + "\n\n\n" + good
    assert "list.txt, line 3); answered by a blank line" in outcome.err
    piped = toy.succeed(
        "--mode=infer",
        "--infer_input_file=-",
        "--infer_output_file=-",
        config=CONFIG,
        stdin=b"gone.wav\nspeech/valid-0.wav\n",
    )
    assert piped.out == "\n" + good
    typed = toy.succeed(
        "--mode=interactive_infer", config=CONFIG, stdin=b"speech/valid-0.wav\n?\n"
    )
    assert typed.out == good + "\n"
    Path("speech/empty.wav").write_bytes(b"RIFF")
    for name, problem in (("gone", "no such file"), ("empty", "unreadable audio")):
        file = f"--infer_input_file=speech/{name}.wav"
        refused = toy.oseq("--mode=infer", file, config=CONFIG)
        assert refused.code == 2 and problem in refused.err


def test_words_have_times(place):
    infer("--infer_output_file=out.txt", "--timestamps_file=times.jsonl")

    files, transcripts = transcripts_of(place)
    lines = [json.loads(line) for line in open("times.jsonl")]
    outputs = Path("out.txt").read_text().splitlines()
    assert [Path(line["file"]).name for line in lines] == files
    num_compared = 0
    for line, output, transcript in zip(lines, outputs, transcripts, strict=True):
        assert [word["word"] for word in line["words"]] == output.split()
        if output != transcript:
            continue
        num_compared += 1
        for word, match in zip(
            line["words"], re.finditer(r"\S+", transcript), strict=True
        ):
            start, end = (place * SECONDS_OF_LETTER for place in match.span())
            assert abs(word["start"] - start) < SECONDS_OF_LETTER
            assert abs(word["end"] - end) < SECONDS_OF_LETTER
    assert num_compared > 0


def test_n_best_lists_have_one_line_of_times_for_each_hypothesis(place):
    outcome = infer(
        "--infer_input_file=speech/valid-0.wav",
        "--infer_output_file=-",
        "--timestamps_file=times.jsonl",
        "--search=oseq.search.CTCBeamSearch",
        "--search_params/num_best=3",
    )

    found = [line.split(" ||| ") for line in outcome.out.splitlines()]
    assert [number for number, _, _ in found] == ["0"] * 3
    scores = [float(score) for _, _, score in found]
    assert scores == sorted(scores, reverse=True)
    lines = [json.loads(line) for line in open("times.jsonl")]
    words = [[word["word"] for word in line["words"]] for line in lines]
    assert words == [text.split() for _, text, _ in found]


def test_an_export_answers_as_infer_and_streams(place, caplog):
    toy.succeed("--mode=export", "--export_dir=export", config=CONFIG)
    files, _ = transcripts_of(place)
    wanted = infer("--infer_output_file=-").out.splitlines()

    wav = [tf.io.read_file(f"speech/{file}") for file in files]
    model = tf.saved_model.load("export")
    found = model.signatures["transcribe_wav"](wav=tf.stack(wav))["text"].numpy()
    assert [text.decode() for (text,) in found] == wanted

    speech = yaml.safe_load(Path("export/export.yaml").read_text())["speech"]
    assert speech["samples_per_frame"] == 2 * speech["window_stride"] == 320
    window = StreamWindow(chunk=0.1, before=1.0, after=0.1)
    stream = StreamingTranscriber.from_export("export", window)
    told = "\n".join(record.getMessage() for record in caplog.records)
    assert "gain, features_mean" in told and "all that follows" in told
    samples, _ = soundfile.read(f"speech/{files[0]}", dtype="float32")
    pieces = [stream.feed(samples[i : i + 1000]) for i in range(0, 8000, 1000)]
    pieces.append(stream.feed(samples[8000:]) + stream.finish())
    # Each window is normalized by itself, so it comes near.
    assert 0.5 < len("".join(pieces)) / len(wanted[0]) < 2 and any(pieces[:-1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--mode=train", "--use_xla_jit", "--logdir=new"], "XLA cannot compile CTCL"),
        (["--mode=score"], "scores frames, not the tokens of a target"),
        (["--mode=infer", "--alignment_file=a"], "has neither scores nor alignments"),
    ],
)
def test_what_ctc_does_not_have_is_refused(place, arguments, message):
    outcome = toy.oseq(*arguments, config=CONFIG)

    assert outcome.code == 2 and message in outcome.err

from __future__ import annotations

import functools
import logging
import string
import sys

import numpy as np
import pytest
import tensorflow as tf

from oseq.config.params import ConfigError, UserError
from oseq.contracts import Position
from oseq.data.graph_mistakes import mistake_behind
from oseq.data.sentencepiece_tokenizer import train_sentencepiece
from oseq.data.speech_data_layer import Speech2TextDataLayer
from oseq.data.text_files import DataError
from oseq.distributed.worker import SingleWorker
from tests.unit.data import data_layer_laws as laws
from tests.unit.data.audio import NO_AUDIO, tone, write_audio, write_truncated
from tests.unit.data.data_layer_laws import OneOf, epoch_of, ids_in

RATE = 8000
FEATURES = {
    "num_audio_features": 12,
    "input_type": "logfbank",
    "sample_freq": RATE,
    "pad_to": 0,
}
NUM_UTTERANCES = 21
AUGMENTATION = {
    "speed_perturbation_ratio": [0.8, 1.25],
    "noise_level_min": -40.0,
    "noise_level_max": -20.0,
    "n_time_mask": 1,
    "width_time_mask": 5,
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A folder with an alphabet and utterances of a tenth of a second to half a one."""
    folder = tmp_path_factory.mktemp("speech")
    alphabet = [" ", *string.ascii_lowercase]
    (folder / "vocab.txt").write_text("\n".join(alphabet) + "\n")
    lines = ["path\ttext"]
    for number in range(NUM_UTTERANCES):
        name = f"{number}.{'flac' if number % 2 else 'wav'}"
        seconds = 0.1 + 0.02 * (number * 4 % NUM_UTTERANCES)
        write_audio(folder / name, tone(seconds, RATE, 200 + 40 * number), RATE)
        lines.append(f"{name}\t{'abcdefg'[: 1 + number % 7]}")
    (folder / "all.tsv").write_text("\n".join(lines) + "\n")
    return folder


def make(folder, mode="train", worker=None, files="all.tsv", **params):
    values = {
        "dataset_files": None if files is None else [str(folder / files)],
        "vocab_file": str(folder / "vocab.txt"),
        "batch_size": 4,
        "seed": 3,
        "cache_dir": str(folder / "cache"),
        **FEATURES,
    }
    return Speech2TextDataLayer(values | params, mode, worker or SingleWorker())


@pytest.fixture
def maker(corpus):
    return functools.partial(make, corpus)


def manifest(folder, *rows):
    """Writes a manifest of (path, text) rows; returns its name."""
    lines = ["path\ttext", *("\t".join(row) for row in rows)]
    (folder / "some.tsv").write_text("\n".join(lines) + "\n")
    return "some.tsv"


@pytest.fixture
def folder(tmp_path):
    """A folder with an alphabet and a second of sound, for a manifest to be written."""
    (tmp_path / "vocab.txt").write_text("\n".join(" abcdé") + "\n")
    write_audio(tmp_path / "a.wav", tone(1.0, RATE), RATE)
    return tmp_path


def test_a_batch_is_what_the_contract_says(corpus):
    (batch,) = make(corpus, "eval").dataset().take(1)
    source, target = batch["source"], batch["target"]
    assert source["features"].dtype == "float32" and source["features"].shape[2] == 12
    assert batch["id"].dtype == "int64"
    assert source["length"].dtype == target["length"].dtype == "int32"
    for i, frames, ids, length in zip(
        batch["id"].numpy(),
        source["length"].numpy(),
        target["ids"].numpy(),
        target["length"].numpy(),
        strict=True,
    ):
        assert frames == round(100 * (0.1 + 0.02 * (i * 4 % NUM_UTTERANCES))) - 1
        assert ids[: length - 1].tolist() == list(range(5, 5 + 1 + i % 7))
        assert ids[length - 1] == 1 and not ids[length:].any()
    assert source["length"].numpy().max() == source["features"].shape[1]


def test_the_data_set_has_static_ranks_and_feature_sizes(corpus):
    spec = make(corpus).dataset().element_spec
    assert spec["source"]["features"].shape.as_list() == [None, None, 12]
    assert spec["target"]["ids"].shape.as_list() == [None, None]
    assert "target" not in make(corpus, "infer").dataset().element_spec


def test_the_spec_tells_sizes_ids_and_symbols(corpus):
    spec = make(corpus).spec
    assert (spec.num_features, spec.target_vocab_size) == (12, 31)
    assert (spec.source_vocab_size, spec.pad_id, spec.eos_id) == (0, 0, 1)
    assert spec.symbols[:6] == ("", "", "", "<UNK>", " ", "a")


def test_over_all_workers_every_example_comes_exactly_once(maker):
    laws.check_every_example_comes_once(maker, 3, NUM_UTTERANCES)


def test_out_of_training_batches_are_those_of_one_worker(maker):
    laws.check_batches_are_those_of_one_worker(maker, "eval", 3)


def test_a_resumed_stream_goes_on_with_the_same_batches_augmentation_included(maker):
    augmented = functools.partial(maker, augmentation=AUGMENTATION, dither=1e-3)
    laws.check_a_resumed_stream_goes_on(augmented)


def test_augmentation_is_another_one_in_every_epoch_and_for_every_seed(corpus):
    def lengths(seed, epoch):
        layer = make(corpus, seed=seed, augmentation=AUGMENTATION)
        return {
            int(i): int(length)
            for batch in epoch_of(layer, epoch)
            for i, length in zip(batch["id"], batch["source"]["length"], strict=True)
        }

    first = lengths(3, 0)
    assert lengths(3, 0) == first
    assert lengths(3, 1) != first and lengths(4, 0) != first


def test_augmentation_and_dither_are_for_training_alone(corpus):
    plain = epoch_of(make(corpus, "eval"))
    asked = epoch_of(make(corpus, "eval", augmentation=AUGMENTATION, dither=0.1))
    for ours, theirs in zip(plain, asked, strict=True):
        np.testing.assert_array_equal(
            ours["source"]["features"], theirs["source"]["features"]
        )


def test_case_41_an_utterance_is_the_same_alone_and_in_any_batch(corpus):
    def features(batch_size):
        rows = {}
        for batch in epoch_of(make(corpus, "eval", batch_size=batch_size)):
            source = batch["source"]
            for i, row, length in zip(
                batch["id"], source["features"], source["length"], strict=True
            ):
                assert not row[length:].any()
                rows[int(i)] = row[:length]
        return rows

    alone, together = features(1), features(NUM_UTTERANCES)
    for i, row in alone.items():
        np.testing.assert_allclose(together[i], row, atol=2e-4)


def test_batch_tokens_are_frames_with_padding(corpus):
    for mode in ("train", "eval"):
        layer = make(corpus, mode, batch_size=None, batch_tokens=150, pad_to=8)
        shapes = [batch["source"]["features"].shape for batch in epoch_of(layer)]
        assert all(rows * frames <= 150 for rows, frames, _ in shapes)
        assert max(rows for rows, *_ in shapes) > 3
        assert all(frames % 8 == 0 for _, frames, _ in shapes)


def test_restoring_gives_the_transcript_and_the_source_is_the_file(corpus):
    layer = make(corpus, "eval")
    for batch in epoch_of(layer):
        for i, ids in zip(batch["id"], batch["target"]["ids"], strict=True):
            assert layer.restore(ids) == layer.text_of("target", i)
    assert layer.text_of("source", 3) == "3.flac"
    assert layer.front_end_files() == {"vocab_file": str(corpus / "vocab.txt")}


def test_text_that_a_model_makes_has_one_space_between_words_also_in_exports(
    corpus, tmp_path
):
    layer = make(corpus, "eval")
    a, b, space = (layer.spec.symbols.index(symbol) for symbol in "ab ")
    front_end = layer.in_graph(tmp_path)
    for ids, text in (
        ([space, a, space, space, b, space, space], "a b"),
        ([a, b], "ab"),
        ([space], ""),
        ([], ""),
    ):
        rows = tf.RaggedTensor.from_row_lengths(tf.constant(ids, tf.int32), [len(ids)])
        assert layer.restore(ids) == text
        assert front_end.decode(rows).numpy()[0].decode() == text


def test_all_mistakes_of_manifests_are_told_at_once_before_any_work(folder):
    (folder / "noise.wav").write_bytes(NO_AUDIO)
    write_audio(folder / "empty.wav", np.zeros(0), RATE)
    files = manifest(
        folder,
        ("gone.wav", "a"),
        ("a.wav", "Ab c!"),
        ("noise.wav", "b"),
        ("empty.wav", "b!"),
        ("also_gone.wav", "a"),
    )
    for mode in ("train", "eval"):
        with pytest.raises(DataError) as error:
            make(folder, mode, files=files)
        message = str(error.value)
        for part in (
            "missing audio files: 2: gone.wav (",
            "some.tsv, line 2), also_gone.wav (",
            "unreadable audio files: 1: noise.wav (",
            "line 4): cannot be read as audio",
            "audio without a single sample: 1: empty.wav (",
            "characters outside the alphabet: 3: '!' 2 (first: ",
            "line 3), 'A' 1 (first:",
            "bad_examples: 'drop'",
            "unknown_characters: 'map' or 'drop'",
        ):
            assert part in message


def test_bad_examples_may_be_dropped_with_a_warning(folder, caplog):
    (folder / "noise.wav").write_bytes(NO_AUDIO)
    rows = [("gone.wav", "a"), ("a.wav", "b"), ("noise.wav", "c")]
    files = manifest(folder, *rows)
    for mode in ("train", "eval"):
        layer = make(folder, mode, files=files, bad_examples="drop")
        assert ids_in(epoch_of(layer)) == [1]
        assert f"{mode}: missing audio files: 1: gone.wav" in caplog.text
    files = manifest(folder, ("gone.wav", "a"))
    with pytest.raises(DataError, match=r"some.tsv: no example is left of 1 utter"):
        make(folder, files=files, bad_examples="drop")


def test_unknown_characters_may_be_mapped_or_dropped(folder, caplog):
    caplog.set_level(logging.INFO)
    files = manifest(folder, ("a.wav", "A É - ç! DE\u0301"), ("a.wav", "ab"))

    def texts(policy):
        layer = make(folder, "eval", files=files, unknown_characters=policy)
        return [layer.text_of("target", i) for i in range(2)]

    assert texts("map") == ["a é c dé", "ab"]
    assert "mapped: 5: 'É' -> 'é' 2 (first:" in caplog.text
    assert "dropped: 2: " in caplog.text
    assert texts("drop") == ["", "ab"]


def test_case_36_labels_that_do_not_fit_are_dropped_in_training_alone(folder, caplog):
    # 9 frames, 5 positions: 5 labels fit, but not with a repeat among them.
    write_audio(folder / "short.wav", tone(0.1, RATE), RATE)
    texts = ("abcda", "abcdab", "abbcd", "abba")
    rows = [("short.wav", text) for text in texts]
    files = manifest(folder, *rows)
    layer = make(folder, files=files, subsampling=2)
    assert ids_in(epoch_of(layer)) == [0, 3]
    text = "transcripts with more labels and repeats than frames / 2: 2: short.wav ("
    assert f"train: {text}" in caplog.text
    assert (
        "line 3): 6 against 5" in caplog.text and "line 4): 6 against 5" in caplog.text
    )
    assert "dropped" in caplog.text
    layer = make(folder, "eval", files=files, subsampling=2)
    assert ids_in(epoch_of(layer)) == [0, 1, 2, 3]
    assert f"eval: {text}" in caplog.text


def test_case_37_an_empty_transcript_is_an_example(folder):
    files = manifest(folder, ("a.wav", ""), ("a.wav", "a"))
    for mode in ("train", "eval"):
        layer = make(folder, mode, files=files)
        (batch,) = epoch_of(layer)
        row = batch["id"].tolist().index(0)
        assert batch["target"]["ids"][row].tolist() == [1, 0]
        assert batch["target"]["length"][row] == 1


def test_case_39_files_of_other_rates_are_as_long_and_alike(folder):
    for rate in (8000, 22050, 44100, 48000):
        write_audio(folder / f"{rate}.wav", tone(1.0, rate), rate)
    names = [f"{rate}.wav" for rate in (8000, 22050, 44100, 48000)]
    files = manifest(folder, *((name, "a") for name in names))
    (batch,) = epoch_of(make(folder, "eval", files=files, gain=1.0))
    assert len(set(batch["source"]["length"].tolist())) == 1
    features = batch["source"]["features"][np.argsort(batch["id"])]
    loud = features[0] > 1  # what is silence follows the file's last bit
    for other in features[1:]:
        assert np.abs(other - features[0])[5:-5][loud[5:-5]].max() < 0.05


@pytest.mark.parametrize("num_samples", [1, 2, 100, 160, 161, 240])
def test_case_40_what_is_shorter_than_a_window_is_an_example(folder, num_samples):
    write_audio(folder / "tiny.wav", tone(1.0, RATE)[:num_samples] + 0.1, RATE)
    layer = make(folder, "eval", files=manifest(folder, ("tiny.wav", "a")))
    (batch,) = epoch_of(layer)
    assert batch["source"]["length"].tolist() == [2 if num_samples > 160 else 1]
    assert np.isfinite(batch["source"]["features"]).all()


def test_case_42_durations_of_a_manifest_are_not_believed(folder):
    (folder / "lies.json").write_text(
        '{"audio_filepath": "a.wav", "duration": 0.01, "text": "a"}\n'
        '{"audio_filepath": "a.wav", "duration": 1e9, "text": "b"}\n'
        '{"audio_filepath": "a.wav", "offset": 0.5, "duration": 60, "text": "c"}\n'
    )
    (batch,) = epoch_of(make(folder, "eval", files="lies.json"))
    frames = dict(zip(batch["id"].tolist(), batch["source"]["length"], strict=True))
    assert frames == {0: 99, 1: 99, 2: 49}


def test_durations_are_limits_of_training_alone(corpus, caplog):
    caplog.set_level(logging.INFO)
    limits = {"min_duration": 0.15, "max_duration": 0.4}
    layer = make(corpus, **limits)
    frames = [n for b in epoch_of(layer) for n in b["source"]["length"].tolist()]
    assert 14 <= min(frames) and max(frames) <= 40
    assert "shorter than min_duration 0.15 s: 3: " in caplog.text
    assert "longer than max_duration 0.4 s: 5: " in caplog.text
    assert make(corpus, "eval", **limits).num_examples == NUM_UTTERANCES


def test_infer_answers_bad_audio_blank_and_goes_on(folder, caplog):
    write_truncated(folder / "half.flac", tone(1.0, RATE), RATE)
    write_audio(folder / "empty.wav", np.zeros(0), RATE)
    lines = ["a.wav", "", "gone.wav", "half.flac", "empty.wav", "a.wav"]
    (folder / "list.txt").write_text("\n".join(lines) + "\n")
    layer = make(folder, "infer", files="list.txt")
    assert layer.num_lines == 6
    assert layer.blank_ids.tolist() == [1, 2, 3, 4]
    assert ids_in(layer.batches()) == [0, 5]
    for part in ("blank lines: 1", "gone.wav (", "line 4): is damaged", "empty.wav ("):
        assert part in caplog.text
    assert "answered by a blank line" in caplog.text


def test_infer_refuses_bad_audio_that_is_named_by_itself(folder):
    write_audio(folder / "empty.wav", np.zeros(0), RATE)
    for name, problem in (
        ("empty.wav", r"audio without a single sample: 1: \S+empty.wav$"),
        ("gone.wav", "gone.wav: no such file"),
    ):
        with pytest.raises(DataError, match=problem):
            make(folder, "infer", files=name)


def test_infer_reads_an_audio_file_a_manifest_and_lines(folder):
    assert ids_in(make(folder, "infer", files="a.wav").batches()) == [0]
    layer = make(folder, "infer", files=manifest(folder, ("a.wav", "?!")))
    assert ids_in(layer.batches()) == [0]
    assert make(folder, "infer", files=None).num_examples == 0
    typed = layer.with_lines([str(folder / "a.wav"), "nothing.wav"])
    assert ids_in(typed.batches()) == [0]
    assert (typed.num_lines, typed.blank_ids.tolist()) == (2, [1])
    assert typed.text_of("source", 0) == str(folder / "a.wav")
    assert layer.num_lines == 1  # it stays what it was


def test_damage_that_training_meets_is_an_error_or_left_out(folder, caplog):
    write_truncated(folder / "half.flac", tone(1.0, RATE), RATE)
    files = manifest(folder, ("half.flac", "a"), ("a.wav", "b"))
    with pytest.raises(tf.errors.OpError, match=r"half\.flac: is damaged") as caught:
        epoch_of(make(folder, files=files))
    assert str(mistake_behind(caught.value)).startswith(f"{folder}/half.flac: is dam")
    layer = make(folder, files=files, bad_examples="drop")
    (batch,) = epoch_of(layer)
    assert batch["id"].tolist() == [1] and batch["source"]["features"].shape[0] == 1
    assert "half.flac: is damaged" in caplog.text


def test_a_batch_of_nothing_but_damage_becomes_the_next_example(folder):
    write_truncated(folder / "half.flac", tone(1.0, RATE), RATE)
    rows = [("half.flac", "a"), ("a.wav", "b"), ("half.flac", "c"), ("half.flac", "d")]
    files = manifest(folder, *rows)
    layer = make(folder, files=files, bad_examples="drop", batch_size=1)
    batches = epoch_of(layer)
    assert [batch["id"].tolist() for batch in batches] == [[1]] * 4
    for batch in batches:
        assert batch["source"]["length"].tolist() == [99]
        assert layer.restore(batch["target"]["ids"][0]) == "b"
    files = manifest(folder, *rows[:1])
    with pytest.raises(tf.errors.OpError, match="no example is left that can be read"):
        epoch_of(make(folder, files=files, bad_examples="drop"))


@pytest.mark.parametrize("batch_size", [1, 32])
def test_what_is_judged_does_not_depend_on_the_batch(folder, batch_size):
    write_truncated(folder / "half.flac", tone(1.0, RATE), RATE)
    files = manifest(folder, ("a.wav", "b"), ("half.flac", "a"))
    params = {"files": files, "batch_size": batch_size}
    layer = make(folder, "eval", **params, bad_examples="drop")
    assert ids_in(layer.batches()) == [0] and layer.num_examples == 1
    with pytest.raises(DataError, match=r"damaged audio files: 1: half\.flac \("):
        make(folder, "eval", **params)


def test_no_pair_to_be_scored_may_lack_its_sound(folder):
    write_truncated(folder / "half.flac", tone(1.0, RATE), RATE)
    for name, problem in (("gone.wav", "missing"), ("half.flac", "damaged")):
        files = manifest(folder, ("a.wav", "b"), (name, "a"))
        with pytest.raises(DataError, match=f"{problem} audio files: 1: {name}"):
            make(folder, "score", files=files, bad_examples="drop")
    files = manifest(folder, ("a.wav", "b"))
    assert ids_in(make(folder, "score", files=files).batches()) == [0]


def test_cached_audio_gives_the_same_features_and_is_augmented_after_it(corpus):
    for params in ({}, {"augmentation": AUGMENTATION}):
        plain = epoch_of(make(corpus, **params))
        for _ in range(2):  # written, then read
            cached = epoch_of(make(corpus, cache_audio=True, **params))
            for ours, theirs in zip(plain, cached, strict=True):
                assert ours["id"].tolist() == theirs["id"].tolist()
                np.testing.assert_allclose(
                    ours["source"]["features"], theirs["source"]["features"], atol=1e-5
                )


def test_cached_audio_is_found_to_be_damaged_before_any_work(folder):
    write_truncated(folder / "half.flac", tone(1.0, RATE), RATE)
    files = manifest(folder, ("half.flac", "a"), ("a.wav", "b"))
    with pytest.raises(DataError, match=r"half\.flac \(.*: is damaged"):
        make(folder, files=files, cache_audio=True)
    layer = make(folder, files=files, cache_audio=True, bad_examples="drop")
    assert layer.num_examples == 1 and ids_in(epoch_of(layer)) == [1]
    # What is kept by now is judged anew.
    with pytest.raises(DataError, match=r"half\.flac \(.*: is damaged"):
        make(folder, files=files, cache_audio=True)


def test_a_sentencepiece_model_may_be_the_alphabet(corpus, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("abcdefg\nabc def\ngfe dcba\n" * 20)
    model = str(tmp_path / "s.model")
    train_sentencepiece(
        [str(text)], model, vocab_size=20, model_type="bpe", byte_fallback=False
    )
    layer = make(corpus, "eval", vocab_file=model, bpe=True)
    assert layer.spec.target_vocab_size == 20
    for batch in epoch_of(layer):
        for i, ids in zip(batch["id"], batch["target"]["ids"], strict=True):
            assert layer.restore(ids) == layer.text_of("target", i)
    symbols = layer.spec.symbols
    ids = batch["target"]["ids"][0][: batch["target"]["length"][0]]
    text_of_ids = "".join(symbols[i] for i in ids)
    assert text_of_ids.strip() == layer.text_of("target", batch["id"][0])


def test_the_fingerprint_is_that_of_features_and_alphabet(corpus, tmp_path):
    vocab = tmp_path / "vocab.txt"
    vocab.write_text("\n".join(string.ascii_lowercase) + "\n")
    first = make(corpus).fingerprint
    assert (
        make(corpus, "eval", batch_size=2, pad_to=16, dither=0.1).fingerprint == first
    )
    others = [
        {"vocab_file": str(vocab)},
        {"num_audio_features": 13},
        {"window_stride": 0.02},
        {"features_mean": np.zeros(12), "features_std_dev": np.ones(12)},
    ]
    assert len({make(corpus, **each).fingerprint for each in others} | {first}) == 5


def test_values_that_do_not_fit_are_refused_all_at_once(corpus):
    with pytest.raises(ConfigError) as error:
        make(
            corpus,
            "eval",
            files=None,
            batch_size=None,
            shuffle=True,
            min_duration=2.0,
            max_duration=1.0,
        )
    message = str(error.value)
    for part in (
        "Speech2TextDataLayer/dataset_files: missing in eval",
        "give batch_tokens or batch_size",
        "shuffle: cannot be True in eval",
        "min_duration: 2.0 is above max_duration 1.0",
    ):
        assert part in message


@pytest.mark.parametrize("mode", ["train", "eval"])
def test_a_list_of_no_files_is_none(corpus, mode):
    with pytest.raises(ConfigError, match=f"dataset_files: missing in {mode}"):
        make(corpus, mode, dataset_files=[])


def test_standard_input_is_read_by_one_process(corpus):
    with pytest.raises(DataError, match="read by one process, not by 2"):
        make(corpus, "infer", OneOf(0, 2), dataset_files="-")
    with pytest.raises(ConfigError, match="eval cannot read standard input"):
        make(corpus, "eval", dataset_files=["-"])


@pytest.mark.parametrize("package", ["soundfile", "soxr"])
def test_a_missing_package_is_named_before_any_file_is_read(
    corpus, monkeypatch, package
):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UserError, match=rf"{package} \(pip install oseq\[speech\]\)"):
        make(corpus)


def test_noise_files_are_looked_for_in_training_alone(corpus):
    augmentation = {"noise_files": "nowhere/*.wav"}
    with pytest.raises(DataError, match="nowhere"):
        make(corpus, augmentation=augmentation)
    assert make(corpus, "eval", augmentation=augmentation).num_examples


def test_symbols_that_no_transcript_can_have_are_told_of(folder, caplog):
    (folder / "vocab.txt").write_text("a\nth\n")
    make(folder, "infer", files="a.wav")
    assert "vocab.txt: 1 symbols of several characters, such as 'th'" in caplog.text


def test_positions_add_up(corpus):
    layer = make(corpus)
    assert layer.advance(Position(2, layer.batches_per_epoch - 1), 1) == Position(3, 0)


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "numbers", "alphabet"),
    [
        ("an4", (948, 130), " ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
        ("fsdd", (2700, 300), string.ascii_lowercase),
    ],
)
def test_the_shared_corpora_are_read(data_dir, tmp_path, name, numbers, alphabet):
    (tmp_path / "vocab.txt").write_text("\n".join(alphabet) + "\n")
    for mode, part, number in zip(
        ("train", "eval"), ("train", "test"), numbers, strict=True
    ):
        layer = make(
            tmp_path,
            mode,
            dataset_files=str(data_dir / "asr" / name / f"{part}.tsv"),
            sample_freq=16000,
        )
        assert layer.num_examples == number
        (batch,) = layer.dataset().take(1)
        assert np.isfinite(batch["source"]["features"].numpy()).all()

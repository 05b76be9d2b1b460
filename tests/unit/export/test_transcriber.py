"""The graph of a speech export, before it is saved: what it answers, at any size."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import soundfile
import tensorflow as tf

from oseq.config.params import ConfigError
from oseq.data.speech_data_layer import Speech2TextDataLayer
from oseq.decoders import FullyConnectedCTCDecoder, RNNDecoderWithAttention
from oseq.distributed.worker import SingleWorker
from oseq.encoders import DeepSpeech2Encoder, TDNNEncoder
from oseq.export import streaming
from oseq.export.saved_model import _module_of
from oseq.export.streaming import StreamingTranscriber, StreamWindow
from oseq.losses import BasicSequenceLoss, CTCLoss
from oseq.models import Speech2Text
from oseq.search.beam import BeamSearch
from oseq.search.ctc_beam import CTCBeamSearch
from oseq.training.inference import Inference
from oseq.training.weights import assign

RATE = 8000
SECONDS = [0.3, 0.0, 1.1, 0.01, 0.7]
ENCODER = {
    "dropout_keep_prob": 1.0,
    "conv_layers": [
        {"kernel_size": [5, 5], "stride": [2, 2], "num_channels": 4, "padding": "SAME"}
    ],
    "activation_fn": tf.nn.relu,
    "num_rnn_layers": 1,
    "row_conv": False,
    "n_hidden": 12,
    "rnn_cell_dim": 8,
    "rnn_type": "lstm",
    "rnn_unidirectional": False,
}


CAUSAL = {
    "causal": True,
    "convnet_layers": [
        {
            "type": "conv1d",
            "repeat": 1,
            "kernel_size": [3],
            "stride": [stride],
            "num_channels": 8,
            "padding": "SAME",
        }
        for stride in (2, 1)
    ],
    "dropout_keep_prob": 1.0,
    "activation_fn": "relu",
}


def make_data_layer(folder, **keys):
    (folder / "alphabet.txt").write_text(" \na\nb\nc\n")
    params = {
        "vocab_file": str(folder / "alphabet.txt"),
        "num_audio_features": 16,
        "input_type": "logfbank",
        "sample_freq": RATE,
        "batch_size": 2,
        **keys,
    }
    return Speech2TextDataLayer(params, "infer", SingleWorker())


def make_model(data_layer, policy="float32", **parts):
    params = {
        "encoder": DeepSpeech2Encoder,
        "encoder_params": ENCODER,
        "decoder": FullyConnectedCTCDecoder,
        "loss": CTCLoss,
        **parts,
    }
    model = Speech2Text(params, data_layer.spec, policy)
    model.build_weights()
    generator = np.random.default_rng(3)
    for weight in model.trainable_variables:
        assign(weight, generator.normal(size=weight.shape) * 0.5)
    return model


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("speech")


@pytest.fixture(scope="module")
def files(folder):
    generator = np.random.default_rng(1)
    names = []
    for number, seconds in enumerate(SECONDS):
        samples = generator.normal(scale=0.1, size=int(seconds * RATE))
        names.append(str(folder / f"{number}.wav"))
        soundfile.write(names[-1], samples, RATE)
    return names


@pytest.fixture(scope="module")
def data_layer(folder):
    return make_data_layer(folder)


@pytest.fixture(scope="module")
def model(data_layer):
    return make_model(data_layer)


@pytest.fixture(scope="module")
def transcriber(model, data_layer, folder):
    return _module_of(model, data_layer, folder)[0]


def text_of(found):
    return [[text.decode() for text in row] for row in found["text"].numpy()]


def read(files):
    return [soundfile.read(file, dtype="float32")[0] for file in files]


def test_wav_files_are_answered_as_in_infer(transcriber, model, data_layer, files):
    wav = [tf.io.read_file(file) for file in files]
    found = transcriber.transcribe_wav(tf.stack(wav))
    answers = list(
        Inference(model, SingleWorker()).answers(data_layer.with_lines(files))
    )
    assert text_of(found) == [answer.hypotheses for answer in answers]
    assert len({text for (text,) in text_of(found)}) > 2
    scores = [answer.scores for answer in answers]
    np.testing.assert_allclose(found["score"], scores, rtol=1e-4, atol=1e-4)
    assert text_of(found)[1] == [""]


def test_samples_are_answered_as_wav_files_whatever_lies_beyond(transcriber, files):
    samples = read(files)
    padded = np.full([len(samples), 9000], np.nan, np.float32)
    for row, each in zip(padded, samples, strict=True):
        row[: len(each)] = each
    length = np.array([len(each) for each in samples], np.int32)
    found = transcriber.transcribe(padded, length)
    wav = transcriber.transcribe_wav(tf.stack([tf.io.read_file(f) for f in files]))
    assert text_of(found) == text_of(wav)


def test_channels_are_averaged_and_rates_changed(transcriber, folder, files):
    slow = read(files)[2]
    stereo = np.stack([slow * 2, slow * 0], axis=1) * 0.5
    soundfile.write(folder / "stereo.wav", stereo, RATE)
    both = [tf.io.read_file(files[2]), tf.io.read_file(str(folder / "stereo.wav"))]
    found = transcriber.transcribe_wav(tf.stack(both))
    np.testing.assert_allclose(found["score"][0], found["score"][1], rtol=0.01)
    soundfile.write(folder / "fast.wav", read(files)[2], 2 * RATE)
    (sample,) = transcriber._front_end.read_wav(
        tf.stack([tf.io.read_file(str(folder / "fast.wav"))])
    ).to_list()
    assert len(sample) == len(slow) // 2


def test_a_batch_may_be_empty(transcriber):
    found = transcriber.transcribe(np.zeros([0, 0], np.float32), np.zeros(0, np.int32))
    assert found["text"].shape == (0, 1)


def test_a_length_beyond_the_samples_is_an_error(transcriber):
    with pytest.raises(tf.errors.InvalidArgumentError, match="length must lie"):
        transcriber.transcribe(np.zeros([1, 10], np.float32), np.array([11], np.int32))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_sound_that_is_no_number_is_an_error(transcriber, value):
    samples = np.zeros([2, 4000], np.float32)
    samples[1, 3000] = value
    for signature in (transcriber.transcribe, transcriber.frames):
        signature(samples, np.array([4000, 3000], np.int32))
        with pytest.raises(tf.errors.InvalidArgumentError, match="must be numbers"):
            signature(samples, np.array([4000, 3001], np.int32))


@pytest.mark.parametrize("subtype", ["PCM_24", "DOUBLE"])
def test_wav_files_are_not_only_of_16_bits(transcriber, files, folder, subtype):
    name = str(folder / "other.wav")
    soundfile.write(name, read(files)[2], RATE, format="WAVEX", subtype=subtype)
    both = [tf.io.read_file(name), tf.io.read_file(files[2])]
    found = transcriber.transcribe_wav(tf.stack(both))
    assert text_of(found)[0] == text_of(found)[1] != [""]


@pytest.mark.parametrize("size", [1, 3, 8])
def test_a_batch_within_the_limit_of_frames_is_answered_at_once(
    data_layer, model, folder, size
):
    seen = []
    generate = model.generate

    def note(batch):
        tf.py_function(seen.append, [tf.shape(batch["source"]["features"])[0]], [])
        return generate(batch)

    data_layer = copy.copy(data_layer)
    window, stride = int(0.02 * RATE), int(0.01 * RATE)
    frames = 16
    data_layer.params = data_layer.params | {
        "batch_tokens": frames * size,
        "batch_size": None,
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(model, "generate", note)
        transcriber, _ = _module_of(model, data_layer, folder)
    samples = np.ones([size, frames * stride + window - stride], np.float32)
    transcriber.transcribe(samples, np.full(size, samples.shape[1], np.int32))
    assert [int(each) for each in seen] == [size]


def test_one_trace_serves_all_shapes(transcriber, model, monkeypatch, files):
    wav = [tf.io.read_file(file) for file in files]
    transcriber.transcribe_wav(tf.stack(wav))
    monkeypatch.setattr(
        type(model), "generate", lambda *_: pytest.fail("the model is traced anew")
    )
    for size, batch in ((8000, 1), (900, 5), (12000, 3), (0, 2)):
        samples = np.full([batch, size], 0.1, np.float32)
        length = np.linspace(size // 2, size, batch).astype(np.int32)
        transcriber.transcribe(samples, length)
        transcriber.frames(samples, length)
    for names in (wav[:1], wav * 3):
        transcriber.transcribe_wav(tf.stack(names))
    for each in (transcriber.transcribe, transcriber.transcribe_wav):
        assert each.experimental_get_tracing_count() == 1


def test_the_metadata_say_what_a_stream_has_to_know(data_layer, model, folder):
    _, details = _module_of(model, data_layer, folder)
    assert details["speech"] == {
        "sample_freq": RATE,
        "window_size": 160,
        "window_stride": 80,
        "samples_per_frame": 160,
        "lookahead": None,  # both directions
        "by_utterance": ["gain", "features_mean"],
        "blank": 0,
        "never": [1, 2, 3],
    }


def test_frames_are_what_ctc_makes_of_the_sound(transcriber, data_layer, files):
    samples = read(files)[0][np.newaxis]
    length = np.array([samples.shape[1]], np.int32)
    frames = transcriber.frames(samples, length)
    total = tf.reduce_sum(tf.exp(frames["log_probabilities"]), axis=2)
    np.testing.assert_allclose(total, 1.0, rtol=1e-5)
    stride = transcriber._front_end.stride
    features = 1 + -(-(samples.shape[1] - int(0.02 * RATE)) // stride)
    assert frames["length"].numpy().tolist() == [-(-features // 2)]
    ids = data_layer._tokenizer.encode_lines(["ab c"])[0]
    text = transcriber.text(ids[np.newaxis], np.array([len(ids)], np.int32))
    assert text["text"].numpy().tolist() == [b"ab c"]


def test_causal_layers_and_fixed_statistics_stream_as_the_whole(folder, files):
    fixed = {"gain": 1.0, "features_mean": -9.0, "features_std_dev": 3.0}
    layer = make_data_layer(folder, **fixed)
    model = make_model(layer, encoder=TDNNEncoder, encoder_params=CAUSAL)
    transcriber, details = _module_of(model, layer, folder)
    speech, window = details["speech"], StreamWindow(0.1, before=0.06, after=0.0)
    assert streaming._problems_of(speech, window) == []

    def frames(samples):
        found = transcriber.frames(samples[np.newaxis], np.array([len(samples)]))
        return found["log_probabilities"].numpy()[0, : found["length"][0]]

    stream = StreamingTranscriber(
        frames,
        layer.restore,
        blank=speech["blank"],
        never=speech["never"],
        sample_freq=RATE,
        samples_per_frame=speech["samples_per_frame"],
        overlap=speech["window_size"] - speech["window_stride"],
        window=window,
    )
    for samples in read(files):
        whole = transcriber.transcribe(samples[np.newaxis], np.array([len(samples)]))
        pieces = [stream.feed(part) for part in np.array_split(samples, 7)]
        assert "".join(pieces) + stream.finish() == text_of(whole)[0][0]


def test_a_search_in_python_cannot_be_exported(data_layer, folder):
    model = make_model(data_layer, search=CTCBeamSearch)
    with pytest.raises(ConfigError, match="CTCGreedySearch"):
        _module_of(model, data_layer, folder)


def test_an_attention_model_has_no_frames(data_layer, folder, files):
    model = make_model(
        data_layer,
        decoder=RNNDecoderWithAttention,
        decoder_params={
            "core_cell_params": {"num_units": 8},
            "decoder_layers": 1,
            "tgt_emb_size": 8,
            "attention_layer_size": 8,
            "attention_type": "bahdanau",
            "decoder_use_skip_connections": False,
        },
        loss=BasicSequenceLoss,
        search=BeamSearch,
        search_params={"extra_decode_length": 3},
    )
    transcriber, details = _module_of(model, data_layer, folder)
    assert transcriber.signatures == ("transcribe", "transcribe_wav")
    assert details["speech"]["samples_per_frame"] is None
    found = transcriber.transcribe_wav(tf.stack([tf.io.read_file(f) for f in files]))
    assert text_of(found)[1] == [""]

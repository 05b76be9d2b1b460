"""Sound in chunks of any size gives the text of the whole."""

from __future__ import annotations

import numpy as np
import pytest

from oseq.config.params import UserError
from oseq.data.audio_feature_params import AUDIO_FEATURE_PARAMS
from oseq.data.audio_features import AudioFeatures
from oseq.export.streaming import StreamingTranscriber, StreamWindow, _problems_of
from oseq.export.text_stream import TextStream

RATE, HOP = 100, 4
SYMBOLS = ["", "a", "b", "c"]
REACH = 2  # frames that a frame sees to either side
EXACT = StreamWindow(chunk=0.2, before=REACH * HOP / RATE, after=REACH * HOP / RATE)


def frames(samples):
    """A model that sees a few frames to either side: [S', 4] from [N]."""
    num_frames = -(-len(samples) // HOP)
    padded = np.pad(samples, [REACH * HOP, REACH * HOP + HOP * num_frames])
    seen = [padded[i * HOP :][: (2 * REACH + 1) * HOP] for i in range(num_frames)]
    levels = np.abs(np.array(seen).sum(axis=1) * 3).astype(int) % len(SYMBOLS)
    return np.log(np.eye(len(SYMBOLS))[levels] * 0.9 + 0.02).astype(np.float32)


def text(ids):
    return "".join(SYMBOLS[i] for i in ids)


def transcriber(window=EXACT, frames=frames, hop=HOP, overlap=0):
    return StreamingTranscriber(
        frames,
        text,
        blank=0,
        sample_freq=RATE,
        samples_per_frame=hop,
        overlap=overlap,
        window=window,
    )


def whole(samples):
    path = frames(samples).argmax(axis=1) if len(samples) else []
    kept = [now for now, before in zip(path, [0, *path], strict=False) if now != before]
    return text(kept)


@pytest.fixture
def samples():
    return np.random.default_rng(5).normal(size=1003).astype(np.float32)


@pytest.mark.parametrize("size", [1, 7, 20, 64, 500, 2000])
def test_whatever_the_size_of_the_chunks_the_text_is_that_of_the_whole(samples, size):
    stream = transcriber()
    pieces = [stream.feed(samples[i : i + size]) for i in range(0, len(samples), size)]
    assert "".join(pieces) + stream.finish() == whole(samples)
    assert size > 100 or sum(map(bool, pieces)) > 5  # it comes while it is spoken


@pytest.mark.parametrize("num_samples", [0, 1, 3, 4, 5, 40])
def test_what_is_shorter_than_a_chunk_has_its_text_at_the_end(samples, num_samples):
    stream = transcriber(StreamWindow(chunk=5.0, before=0.1, after=0.1))
    assert stream.feed(samples[:num_samples]) == ""
    assert stream.finish() == whole(samples[:num_samples])


def test_after_the_end_another_stream_begins(samples):
    stream = transcriber()
    first, second = samples[:300], samples[300:]
    assert stream.feed(first) + stream.finish() == whole(first)
    assert stream.feed(second) + stream.finish() == whole(second)


def test_no_more_sound_is_kept_than_can_still_be_seen(samples):
    stream = transcriber()
    for _ in range(50):
        stream.feed(samples)
    assert len(stream._sound) < 200


def test_a_window_that_sees_too_little_changes_the_text(samples):
    stream = transcriber(StreamWindow(chunk=0.2, before=0.0, after=0.0))
    assert stream.feed(samples) + stream.finish() != whole(samples)


class OfFeatures:
    """Frames of real features: each is told by its own few frames of features.

    As the beginning of the hop and its end are in it, nothing may be missing.
    """

    def __init__(self, window, subsampling):
        params = {
            "num_audio_features": 2,
            "input_type": "spectrogram",
            "sample_freq": RATE,
            "window_size": window / RATE,
            "window_stride": HOP / RATE,
            "window": "none",
            "preemphasis": 0.0,
            "gain": 1.0,
            "features_mean": 0.0,
            "features_std_dev": 1.0,
        }
        defaults = {key: each.default for key, each in AUDIO_FEATURE_PARAMS.items()}
        self.features = AudioFeatures(defaults | params)
        self.subsampling = subsampling

    def __call__(self, samples):
        features, length = self.features(samples[np.newaxis], np.array([len(samples)]))
        sums = features.numpy()[0, : length[0]].sum(axis=1)
        sums = np.append(sums, np.zeros(-len(sums) % self.subsampling))
        sums = sums.reshape(-1, self.subsampling).sum(axis=1)
        levels = np.abs(sums * 10).astype(int) % len(SYMBOLS)
        return np.log(np.eye(len(SYMBOLS))[levels] * 0.9 + 0.02).astype(np.float32)


@pytest.mark.parametrize("size", [3, 40])
@pytest.mark.parametrize("subsampling", [1, 2, 3])
@pytest.mark.parametrize("window", [4, 5, 10, 17])
def test_frames_of_real_features_are_those_of_the_whole(window, subsampling, size):
    model = OfFeatures(window, subsampling)
    for num_samples in range(201, 201 + 3 * HOP * subsampling, 2):
        samples = np.random.default_rng(size).normal(size=num_samples)
        samples = samples.astype(np.float32)
        seen = []
        stream = transcriber(
            StreamWindow(chunk=0.2, before=0.0, after=0.0),
            frames=model,
            hop=HOP * subsampling,
            overlap=window - HOP,
        )
        stream._stream.feed = lambda frames, seen=seen: seen.append(frames) or []
        for i in range(0, num_samples, size):
            stream.feed(samples[i : i + size])
        stream.finish()
        np.testing.assert_array_equal(np.concatenate(seen), model(samples))


def test_what_the_model_has_to_see_is_rounded_up_to_whole_frames(samples):
    little = 0.01 * HOP / RATE
    reach = (REACH - 1) * HOP / RATE + little
    stream = transcriber(StreamWindow(chunk=0.2, before=reach, after=reach))
    assert stream.feed(samples) + stream.finish() == whole(samples)


def test_a_model_that_gives_too_few_frames_is_refused(samples):
    stream = transcriber(frames=lambda sound: frames(sound)[: -REACH - 1])
    with pytest.raises(UserError, match="4 of the 5 frames of a chunk: .*after"):
        stream.feed(samples)


def test_the_text_of_a_long_stream_takes_no_longer_at_its_end(samples):
    longest = 0

    def measured(ids):
        nonlocal longest
        longest = max(longest, len(ids))
        return text(ids)

    stream = transcriber()
    stream._text = TextStream(measured)
    long = np.tile(samples, 10)
    pieces = [stream.feed(long[i : i + 20]) for i in range(0, len(long), 20)]
    assert "".join(pieces) + stream.finish() == whole(long)
    assert len("".join(pieces)) > 1000 and longest < 100


SPEECH = {
    "sample_freq": 16000,
    "window_size": 400,
    "window_stride": 160,
    "samples_per_frame": 640,
    "lookahead": 11,
    "by_utterance": [],
}


@pytest.mark.parametrize(
    ("said", "window", "problems"),
    [
        ({}, {"after": 0.08}, []),
        ({}, {"after": 0.04}, ["see 0.08 s behind a chunk, the stream 0.04 s"]),
        ({"lookahead": 3}, {"after": 0.0}, []),
        ({"lookahead": None}, {"after": 9.0}, ["all that follows"]),
        ({"by_utterance": ["gain", "features_mean"]}, {}, ["gain, features_mean: N"]),
    ],
)
def test_what_keeps_a_stream_from_the_text_of_the_whole_is_told(said, window, problems):
    found = _problems_of(SPEECH | said, StreamWindow(**window))
    assert len(found) == len(problems)
    assert all(part in each for part, each in zip(problems, found, strict=True))


def test_a_folder_without_a_speech_model_is_refused(tmp_path):
    with pytest.raises(UserError, match="no export"):
        StreamingTranscriber.from_export(tmp_path)
    (tmp_path / "export.yaml").write_text("format: saved_model\n")
    with pytest.raises(UserError, match="no CTC model"):
        StreamingTranscriber.from_export(tmp_path)

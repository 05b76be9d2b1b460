"""Sound in chunks of any size gives the text of the whole."""

from __future__ import annotations

import numpy as np
import pytest

from oseq.config.params import UserError
from oseq.export.streaming import StreamingTranscriber, StreamWindow

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


def transcriber(window=EXACT):
    return StreamingTranscriber(
        frames, text, blank=0, sample_freq=RATE, samples_per_frame=HOP, window=window
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


def test_a_folder_without_a_speech_model_is_refused(tmp_path):
    with pytest.raises(UserError, match="no export"):
        StreamingTranscriber.from_export(tmp_path)
    (tmp_path / "export.yaml").write_text("format: saved_model\n")
    with pytest.raises(UserError, match="no CTC model"):
        StreamingTranscriber.from_export(tmp_path)

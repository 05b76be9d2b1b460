"""WAV files inside the graph against libsndfile."""

from __future__ import annotations

import io
import struct

import numpy as np
import pytest
import soundfile
import tensorflow as tf

from oseq.data.graph_wav import decode_wav

RATE = 11025
SUBTYPES = ["PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE"]

# One graph for all files, as in an export.
decode = tf.function(
    decode_wav, input_signature=[tf.TensorSpec([], tf.string)], autograph=False
)


def write(samples, form="WAV", subtype="PCM_16"):
    file = io.BytesIO()
    soundfile.write(file, samples, RATE, format=form, subtype=subtype)
    return file.getvalue()


def sound(num_channels=1, size=101):
    shape = (size, num_channels)
    return np.random.default_rng(num_channels).uniform(-1, 1, size=shape)


def assert_read_as_by_libsndfile(content):
    wanted, rate = soundfile.read(io.BytesIO(content), dtype="float32", always_2d=True)
    found, found_rate = decode(content)
    assert found_rate == rate and found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, atol=1e-7)


def riff(*chunks):
    """Returns a WAV file of chunks (name, content, size that is written or None)."""
    body = b"WAVE"
    for name, content, size in chunks:
        body += name + struct.pack("<I", len(content) if size is None else size)
        body += content + b"\0" * (len(content) % 2)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def form(tag=1, num_channels=1, bits=16):
    size = num_channels * bits // 8
    return (
        b"fmt ",
        struct.pack("<HHIIHH", tag, num_channels, RATE, RATE * size, size, bits),
        None,
    )


def data(count=20):
    return (sound(size=count)[:, 0] * 32767).astype("<i2").tobytes()


@pytest.mark.parametrize("num_channels", [1, 2, 3])
@pytest.mark.parametrize("container", ["WAV", "WAVEX"])
@pytest.mark.parametrize("subtype", SUBTYPES)
def test_every_coding_is_read_as_by_libsndfile(subtype, container, num_channels):
    assert_read_as_by_libsndfile(write(sound(num_channels), container, subtype))


@pytest.mark.parametrize(
    "chunks",
    [
        [form(), (b"LIST", b"INFOISFT", None), (b"data", data(), None)],
        [(b"JUNK", b"odd", None), form(), (b"data", data(), None)],
        [form(), (b"LIST", b"", None), (b"data", data(), None), (b"LIST", b"a", None)],
        [form(), (b"data", b"", None), (b"LIST", data(), None)],
        [form(), (b"data", data(), 0xFFFFFFFF)],
        [form(), (b"data", data(), 1000)],
        [form(), (b"data", data(), 13)],
        [form(num_channels=2), (b"data", data()[:-2], None)],
        [form(bits=8), (b"data", b"\x80\xff\x00", None)],
        [form(), (b"data", b"", None)],
    ],
    ids=[
        "list before the data",
        "odd chunk",
        "chunk behind the data",
        "no data, but a chunk behind",
        "data of size 0xFFFFFFFF",
        "data cut off",
        "part of a sample",
        "part of the channels",
        "odd data",
        "no data",
    ],
)
def test_odd_files_are_read_as_by_libsndfile(chunks):
    assert_read_as_by_libsndfile(riff(*chunks))


@pytest.mark.parametrize("size", [0, 8, 36])
def test_what_was_not_closed_is_read_to_its_end(size):
    content = riff(form(), (b"data", data(), 0))
    content = content[:4] + struct.pack("<I", size) + content[8:]
    found, _ = decode(content)
    np.testing.assert_array_equal(found[:, 0] * 2**15, np.frombuffer(data(), "<i2"))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "no WAV file"),
        (b"RIFF", "no WAV file"),
        (b"fLaC" + bytes(100), "no WAV file"),
        pytest.param(b"\xff" * 100, "no WAV file", id="no text either"),
        (riff(), "lacks its chunks"),
        (riff(form()), "lacks its chunks"),
        (riff((b"data", data(), None)), "lacks its chunks"),
        (riff((b"fmt ", b"short", None), (b"data", data(), None)), "lacks its chunks"),
        (riff((b"LIST", b"", 0xFFFFFFF0), form()), "lacks its chunks"),
        (write(sound(), subtype="ULAW"), "must be PCM"),
        (riff(form(bits=12), (b"data", data(), None)), "must be PCM"),
        (riff(form(num_channels=0), (b"data", data(), None)), "must be PCM"),
        (riff(form(tag=0xFFFE), (b"data", data(), None)), "must be PCM"),
    ],
)
def test_what_cannot_be_read_is_told(content, problem):
    with pytest.raises(tf.errors.InvalidArgumentError, match=problem):
        decode(content)

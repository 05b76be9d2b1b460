"""WAV files inside a TensorFlow graph; elsewhere libsndfile reads them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

_PCM, _FLOAT, _EXTENSIBLE = 1, 3, 0xFFFE  # format tags
_FIRST_CHUNK = 12  # after "RIFF", a size and "WAVE"
_HEAD = 8  # bytes of a chunk's name and size


def decode_wav(file: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the samples and the rate of a WAV file.

    Of a stream, or a file that was not closed, everything to its end is sound: its data
    are said to have 4 GiB, or 0 bytes where the file is said to end with its head (of
    which libsndfile may read none). See "Multimedia Programming Interface and Data
    Specifications 1.0", IBM and Microsoft 1991.

    Args:
      file: scalar string, its bytes: PCM of 8, 16, 24 or 32 bits or float of 32 or 64.

    Returns:
      ([N, channels] float32, of which PCM lies between -1 and 1; scalar int32, Hz).

    Raises:
      InvalidArgumentError: the bytes are no WAV file, or one of another coding.
    """
    file = _checked(file)
    chunks = _find_chunks(file)
    wave = _read_format(tf.strings.substr(file, chunks.format, chunks.format_size))
    size = wave.num_bytes * wave.num_channels
    count = (_size_of_data(file, chunks.data) // size) * size
    data = tf.strings.substr(file, chunks.data, count)
    samples = tf.switch_case(wave.coding, [lambda d=d: d(data) for d in _DECODERS])
    return tf.reshape(samples, [-1, wave.num_channels]), wave.rate


class _Chunks(NamedTuple):
    """Where the chunks begin that matter, after their heads; scalars int32."""

    format: tf.Tensor
    format_size: tf.Tensor
    data: tf.Tensor


class _Format(NamedTuple):
    """What a file says of its sound; scalars int32."""

    coding: tf.Tensor  # place in _CODINGS
    num_bytes: tf.Tensor  # of a sample
    num_channels: tf.Tensor
    rate: tf.Tensor  # Hz


def _checked(file: tf.Tensor) -> tf.Tensor:
    """Returns a file that begins as WAV files do."""
    head = tf.strings.substr(file, 0, _FIRST_CHUNK)
    is_wave = tf.strings.regex_full_match(head, r"(?s)RIFF\C{4}WAVE")
    check = tf.debugging.Assert(is_wave, ["what is no WAV file cannot be transcribed"])
    with tf.control_dependencies([check]):
        return tf.identity(file)


def _find_chunks(file: tf.Tensor) -> _Chunks:
    """Returns the chunks of a file, whatever stands between them."""
    size = tf.cast(tf.strings.length(file), tf.int64)
    first, no_chunk = tf.constant(_FIRST_CHUNK, tf.int64), tf.constant(-1, tf.int64)

    def look(place, found_format, format_size, data):
        name = tf.strings.substr(file, place, 4)
        length = _number(file, place + 4, 4)
        place += _HEAD
        is_format = name == "fmt "
        return (
            place + length + length % 2,  # chunks begin at even places
            tf.where(is_format, place, found_format),
            tf.where(is_format, tf.minimum(length, size - place), format_size),
            tf.where(name == "data", place, data),
        )

    _, found_format, format_size, data = tf.while_loop(
        lambda place, _, __, data: (data < 0) & (place + _HEAD <= size),
        look,
        (first, no_chunk, no_chunk * 0, no_chunk),
    )
    check = tf.debugging.Assert(
        (data >= 0) & (format_size >= 16),
        ["a WAV file lacks its chunks 'fmt ' and 'data', or is cut off in them"],
    )
    with tf.control_dependencies([check]):
        return _Chunks(
            *(tf.cast(each, tf.int32) for each in (found_format, format_size, data))
        )


def _read_format(chunk: tf.Tensor) -> _Format:
    """Returns what the chunk ``fmt `` says, at least 16 bytes."""
    tag, num_channels = _number(chunk, 0, 2), _number(chunk, 2, 2)
    # An extensible format has the tag at the beginning of a GUID.
    has_guid = (tag == _EXTENSIBLE) & (tf.strings.length(chunk) >= 26)
    tag = tf.where(has_guid, _number(chunk, tf.where(has_guid, 24, 0), 2), tag)
    num_bits = _number(chunk, 14, 2)
    is_ours = tf.reduce_all(tf.stack([tag, num_bits]) == _CODINGS, axis=1)
    problem = (
        "a WAV file must be PCM (format 1) of 8, 16, 24 or 32 bits or float (format 3) "
        "of 32 or 64, with at least a channel; its format, bits and channels are"
    )
    check = tf.debugging.Assert(
        tf.reduce_any(is_ours) & (num_channels > 0),
        [problem, tag, num_bits, num_channels],
    )
    with tf.control_dependencies([check]):
        return _Format(
            tf.argmax(is_ours, output_type=tf.int32),
            tf.cast(num_bits // 8, tf.int32),
            tf.cast(num_channels, tf.int32),
            tf.cast(_number(chunk, 4, 4), tf.int32),
        )


def _size_of_data(file: tf.Tensor, start: tf.Tensor) -> tf.Tensor:
    """Returns how many bytes of sound begin at ``start``, as far as they are there."""
    there = tf.strings.length(file) - start
    said = tf.minimum(_number(file, start - 4, 4), tf.cast(there, tf.int64))
    end_of_file = _HEAD + _number(file, 4, 4)
    is_open = (said == 0) & (end_of_file <= tf.cast(start, tf.int64))
    return tf.where(is_open, there, tf.cast(said, tf.int32))


def _number(text: tf.Tensor, place: tf.Tensor | int, num_bytes: int) -> tf.Tensor:
    """Returns the number [] int64 without sign, lowest byte first, at a place."""
    digits = tf.io.decode_raw(tf.strings.substr(text, place, num_bytes), tf.uint8)
    return tf.reduce_sum(
        tf.cast(digits, tf.int64) * [256**place for place in range(num_bytes)]
    )


def _integers(dtype: tf.DType, bits: int) -> Callable[[tf.Tensor], tf.Tensor]:
    def decode(data: tf.Tensor) -> tf.Tensor:
        numbers = tf.io.decode_raw(data, dtype)
        return tf.cast(numbers, tf.float32) / 2.0 ** (bits - 1)

    return decode


def _unsigned_bytes(data: tf.Tensor) -> tf.Tensor:
    return tf.cast(tf.io.decode_raw(data, tf.uint8), tf.float32) / 128.0 - 1.0


def _integers_of_24_bits(data: tf.Tensor) -> tf.Tensor:
    digits = tf.cast(tf.reshape(tf.io.decode_raw(data, tf.uint8), [-1, 3]), tf.int32)
    # In the upper bytes, so that the sign is where int32 has it.
    numbers = tf.reduce_sum(tf.bitwise.left_shift(digits, [8, 16, 24]), axis=1)
    return tf.cast(numbers, tf.float32) / 2.0**31


def _floats(dtype: tf.DType) -> Callable[[tf.Tensor], tf.Tensor]:
    return lambda data: tf.cast(tf.io.decode_raw(data, dtype), tf.float32)


_CODINGS = [  # format tag, bits
    [_PCM, 8],
    [_PCM, 16],
    [_PCM, 24],
    [_PCM, 32],
    [_FLOAT, 32],
    [_FLOAT, 64],
]
_DECODERS: list[Callable[[tf.Tensor], tf.Tensor]] = [
    _unsigned_bytes,
    _integers(tf.int16, 16),
    _integers_of_24_bits,
    _integers(tf.int32, 32),
    _floats(tf.float32),
    _floats(tf.float64),
]

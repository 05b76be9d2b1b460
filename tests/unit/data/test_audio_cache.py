from __future__ import annotations

import numpy as np
import pytest

from oseq.data.audio_cache import load_or_write_audio
from oseq.data.text_files import DataError
from tests.unit.data.audio import tone

SAMPLES = {
    2: tone(0.1),
    5: np.array([-1.0, 1.0 / 32768, 32767 / 32768], np.float32),
    7: 3 * tone(0.05),  # beyond full scale, as files of floats may be
}
ROWS = np.array(list(SAMPLES), np.int64)


def load(folder, read=SAMPLES.__getitem__, rows=ROWS, key=("x",)):
    return load_or_write_audio(rows, read, key, str(folder))


def never(row):
    raise AssertionError("must not be read again")


def damaged(row):
    if row != 2:
        raise DataError(f"{row}.wav: is damaged")
    return SAMPLES[row]


def test_samples_are_kept_in_16_bits_and_read_once(tmp_path):
    load(tmp_path)
    cache, problems = load(tmp_path, never)
    assert not problems
    for row, samples in SAMPLES.items():
        kept = cache.read(row)
        assert kept.dtype == np.float32
        half_a_bit = max(1.0, np.abs(samples).max()) / 32768
        np.testing.assert_allclose(kept, samples, atol=half_a_bit)
    # What was in 16 bits stays what it was.
    np.testing.assert_array_equal(cache.read(5), SAMPLES[5])


def test_other_rows_and_other_keys_are_other_caches(tmp_path):
    load(tmp_path)
    for changed in ({"rows": ROWS[:2]}, {"key": ("y",)}):
        with pytest.raises(AssertionError):
            load(tmp_path, never, **changed)
    assert len(list(tmp_path.iterdir())) == 1


def test_what_cannot_be_read_is_told_each_time_and_tried_again(tmp_path):
    expected = {5: "5.wav: is damaged", 7: "7.wav: is damaged"}
    tried = []

    def read(row):
        tried.append(row)
        return damaged(row)

    for rows in ([2, 5, 7], [5, 7]):
        cache, problems = load(tmp_path, read)
        assert problems == expected
        assert sorted(tried) == rows
        tried.clear()
        np.testing.assert_allclose(cache.read(2), SAMPLES[2], atol=1e-4)

    cache, problems = load(tmp_path)
    assert not problems
    np.testing.assert_array_equal(cache.read(5), SAMPLES[5])


@pytest.mark.parametrize("name", ["samples.bin", "places.npz"])
def test_a_damaged_cache_is_rebuilt(tmp_path, caplog, name):
    load(tmp_path)
    (folder,) = tmp_path.iterdir()
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[:-3])
    cache, _ = load(tmp_path)
    assert "damaged cache is rebuilt" in caplog.text
    np.testing.assert_array_equal(cache.read(5), SAMPLES[5])


def test_nothing_is_cached_too(tmp_path):
    load(tmp_path, never, rows=ROWS[:0])
    assert len(list(tmp_path.iterdir())) == 1

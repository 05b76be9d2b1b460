"""The sample rate of a signal changed in a graph, beside soxr."""

from __future__ import annotations

import numpy as np
import pytest
import soxr
import tensorflow as tf

from oseq.data.graph_resampling import resample

_change = tf.function(
    lambda samples, rate: resample(samples, rate, 16000),
    input_signature=[tf.TensorSpec([None], tf.float32), tf.TensorSpec([], tf.int32)],
    autograph=False,
)
RATES = [8000, 11025, 22050, 44100, 48000]


def tone(frequency, rate, seconds=0.5):
    return np.sin(2 * np.pi * frequency * np.arange(int(rate * seconds)) / rate)


@pytest.mark.parametrize("rate", RATES)
def test_a_tone_is_the_same_tone_at_another_rate(rate):
    found = _change(tone(440, rate), rate).numpy()
    middle = slice(800, -800)  # at the ends the signal begins out of nothing
    np.testing.assert_allclose(found[middle], tone(440, 16000)[middle], atol=2e-3)


@pytest.mark.parametrize("rate", RATES)
def test_noise_becomes_what_soxr_makes_of_it(rate):
    signal = np.random.default_rng(1).normal(size=rate).astype(np.float32)
    signal = soxr.resample(soxr.resample(signal, rate, 6000), 6000, rate)
    found = _change(signal, rate).numpy()
    wanted = soxr.resample(signal, rate, 16000)
    size = min(len(found), len(wanted))
    assert abs(len(found) - len(wanted)) <= 1
    np.testing.assert_allclose(
        found[200 : size - 200], wanted[200 : size - 200], atol=0.01
    )


def test_what_the_new_rate_cannot_hold_is_gone():
    assert np.abs(_change(tone(12000, 48000), 48000).numpy()[400:-400]).max() < 2e-3


@pytest.mark.parametrize(("num_samples", "rate"), [(0, 8000), (1, 8000), (7, 44100)])
def test_short_signals_have_the_length_that_their_duration_asks_for(num_samples, rate):
    found = _change(np.ones(num_samples), rate)
    assert found.shape == (-(-num_samples * 16000 // rate),)
    assert np.isfinite(found).all()

"""Learning rate policies: plain functions of the step, by OpenSeq2Seq's names.

Each is ``policy(global_step, **keys) -> scalar float32 tensor`` and runs in the
graph of the update. ``global_step`` counts the updates already applied, so the
very first update sees 0 and is update number ``n = global_step + 1``:

- warm-up is the line through 0 at ``n = 0`` and ``learning_rate`` at
  ``n = warmup_steps``: the first update already moves by one step of the line
  (OpenSeq2Seq wastes it on a rate of 0);
- powers of the step (``transformer_policy``, ``inv_sqrt_decay``) are taken of
  ``n``, as 0 has no inverse;
- decays count from where they begin: update ``global_step = begin_decay_at`` is
  the last at the full rate.

``decay_steps`` and ``steps_per_epoch`` are filled in from the length of the run by
``build_optimizer`` where a config omits them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import tensorflow as tf


def fixed_lr(
    global_step: tf.Tensor, learning_rate: float, warmup_steps: int = 0
) -> tf.Tensor:
    """``learning_rate`` throughout, after the warm-up."""
    return _warm_up(global_step, learning_rate, warmup_steps)


def piecewise_constant(
    global_step: tf.Tensor,
    learning_rate: float,
    boundaries: Sequence[int],
    decay_rates: Sequence[float],
    steps_per_epoch: int | None = None,
    warmup_steps: int = 0,
) -> tf.Tensor:
    """``learning_rate`` times ``decay_rates[i]`` once ``boundaries[i]`` is passed.

    Args:
      global_step: updates applied so far.
      learning_rate: the rate before the first boundary.
      boundaries: in epochs where ``steps_per_epoch`` is known, else in updates.
      decay_rates: as many as boundaries, each relative to ``learning_rate``.
      steps_per_epoch: updates of one epoch.
      warmup_steps: updates of linear warm-up.
    """
    if len(boundaries) != len(decay_rates):
        raise ValueError(
            f"piecewise_constant: {len(boundaries)} boundaries but "
            f"{len(decay_rates)} decay_rates; give one rate per boundary"
        )
    steps = tf.constant(boundaries, tf.float32) * float(steps_per_epoch or 1)
    passed = tf.reduce_sum(tf.cast(_float(global_step) > steps, tf.int32))
    rate = tf.gather(tf.constant([1.0, *decay_rates], tf.float32), passed)
    return rate * _warm_up(global_step, learning_rate, warmup_steps)


def exp_decay(
    global_step: tf.Tensor,
    learning_rate: float,
    decay_steps: int,
    decay_rate: float,
    use_staircase_decay: bool,
    begin_decay_at: int = 0,
    min_lr: float = 0.0,
    warmup_steps: int = 0,
) -> tf.Tensor:
    """Multiplied by ``decay_rate`` every ``decay_steps``, not below ``min_lr``."""
    decayed = _steps_of_decay(global_step, begin_decay_at, warmup_steps) / decay_steps
    if use_staircase_decay:
        decayed = tf.floor(decayed)
    rate = tf.maximum(learning_rate * tf.pow(float(decay_rate), decayed), min_lr)
    return _warm_up(global_step, rate, warmup_steps)


def poly_decay(
    global_step: tf.Tensor,
    learning_rate: float,
    decay_steps: int,
    power: float = 1.0,
    begin_decay_at: int = 0,
    min_lr: float = 0.0,
    warmup_steps: int = 0,
) -> tf.Tensor:
    """Falls to ``min_lr`` in ``decay_steps``, as ``(1 - share done) ** power``."""
    remaining = 1.0 - _share_of_decay(
        global_step, decay_steps, begin_decay_at, warmup_steps
    )
    rate = min_lr + (learning_rate - min_lr) * tf.pow(remaining, float(power))
    return _warm_up(global_step, rate, warmup_steps)


def cosine_decay(
    global_step: tf.Tensor,
    learning_rate: float,
    decay_steps: int,
    begin_decay_at: int = 0,
    min_lr: float = 0.0,
    warmup_steps: int = 0,
) -> tf.Tensor:
    """Falls to ``min_lr`` in ``decay_steps`` along half a cosine.

    ``min_lr`` is the rate at the end. OpenSeq2Seq passes it on as a fraction of
    ``learning_rate``, whatever its name says.
    """
    share = _share_of_decay(global_step, decay_steps, begin_decay_at, warmup_steps)
    height = 0.5 * (1.0 + tf.cos(math.pi * share))
    rate = min_lr + (learning_rate - min_lr) * height
    return _warm_up(global_step, rate, warmup_steps)


def transformer_policy(
    global_step: tf.Tensor,
    learning_rate: float,
    d_model: int,
    warmup_steps: int,
    max_lr: float | None = None,
    coefficient: float = 1.0,
) -> tf.Tensor:
    """The policy of "Attention Is All You Need" (equation 3) times two factors.

    ``learning_rate * coefficient * d_model^-0.5 * min(n * warmup_steps^-1.5, n^-0.5)``
    for update number n.
    """
    number = _float(global_step) + 1.0
    warm_up = max(warmup_steps, 1)
    shape = tf.minimum(number * warm_up**-1.5, tf.math.rsqrt(number))
    rate = learning_rate * coefficient * d_model**-0.5 * shape
    return rate if max_lr is None else tf.minimum(rate, max_lr)


def inv_poly_decay(
    global_step: tf.Tensor,
    learning_rate: float,
    decay_steps: int,
    min_lr: float,
    power: float = 1.0,
    begin_decay_at: int = 0,
    warmup_steps: int = 0,
) -> tf.Tensor:
    """``learning_rate / (1 + scale * step) ** power``, at ``min_lr`` in the end.

    ``scale`` is chosen so that ``min_lr`` is reached after ``decay_steps``; the rate
    falls on after them.
    """
    if power <= 0.0:
        raise ValueError(f"inv_poly_decay: power must be positive, not {power}")
    floor = min(max(min_lr, 1e-8), learning_rate)
    scale = ((learning_rate / floor) ** (1.0 / power) - 1.0) / decay_steps
    step = _steps_of_decay(global_step, begin_decay_at, warmup_steps)
    rate = learning_rate / tf.pow(1.0 + scale * step, float(power))
    return _warm_up(global_step, rate, warmup_steps)


def inv_sqrt_decay(
    global_step: tf.Tensor, learning_rate: float, warmup_steps: int
) -> tf.Tensor:
    """``learning_rate * sqrt(warmup_steps / n)`` for update number n.

    fairseq's ``inverse_sqrt``: the warm-up ends at ``learning_rate``, which is the
    highest rate of the run.
    """
    number = _float(global_step) + 1.0
    warm_up = float(max(warmup_steps, 1))
    return learning_rate * tf.minimum(number / warm_up, tf.sqrt(warm_up / number))


def _float(global_step: tf.Tensor) -> tf.Tensor:
    return tf.cast(tf.convert_to_tensor(global_step), tf.float32)


def _warm_up(
    global_step: tf.Tensor, rate: tf.Tensor | float, warmup_steps: int
) -> tf.Tensor:
    rate = tf.convert_to_tensor(rate, tf.float32)
    if warmup_steps <= 0:
        return rate
    return rate * tf.minimum((_float(global_step) + 1.0) / warmup_steps, 1.0)


def _steps_of_decay(
    global_step: tf.Tensor, begin_decay_at: int, warmup_steps: int
) -> tf.Tensor:
    begin = max(begin_decay_at, warmup_steps)
    return tf.maximum(_float(global_step) - float(begin), 0.0)


def _share_of_decay(
    global_step: tf.Tensor, decay_steps: int, begin_decay_at: int, warmup_steps: int
) -> tf.Tensor:
    step = _steps_of_decay(global_step, begin_decay_at, warmup_steps)
    return tf.minimum(step / float(decay_steps), 1.0)

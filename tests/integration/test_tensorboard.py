"""What a run leaves for TensorBoard."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tests.integration import toy


def test_curves_samples_and_attention_are_there(workplace):
    outcome = toy.succeed(
        *toy.TINY,
        "--logdir=run",
        "--mode=train_eval",
        "--max_steps=4",
        "--eval_steps=2",
        "--save_summaries_steps=2",
        "--print_loss_steps=2",
        "--print_samples_steps=4",
    )
    curves = toy.curves("run")
    losses = {step: float(value) for step, value in curves["train/loss"].items()}
    assert losses.keys() == {2, 4}
    np.testing.assert_allclose(
        [losses[2], losses[4]], list(toy.losses(outcome).values()), atol=1e-4
    )
    for tag in (
        "train/learning_rate",
        "train/global_gradient_norm",
        "train/loss_scale",
        "train/padding_share",
        "speed/target_tokens_per_second",
        "eval/loss",
        "eval/perplexity",
        "eval/BLEU",
        "eval/chrF",
    ):
        assert curves[tag].keys() == {2, 4}, tag
        assert np.isfinite(list(curves[tag].values())).all(), tag
    source = (workplace / "data/toy-reversal/valid/source.txt").read_text().splitlines()
    samples = curves["eval/samples"][4]
    assert samples[0].decode().startswith(source[0])
    _, _, encoded = curves["eval/attention"][4]  # width, height, PNG
    picture = tf.io.decode_png(encoded).numpy()
    assert picture.std() > 0
    assert "source:     " in outcome.err and "hypothesis: " in outcome.err

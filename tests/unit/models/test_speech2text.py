"""Speech to text: which search and loss go with which decoder, and its error rates."""

from __future__ import annotations

import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

from oseq.config.params import ConfigError, UserError
from oseq.contracts import DataSpec, Result
from oseq.decoders import (
    FullyConnectedCTCDecoder,
    JointCTCAttentionDecoder,
    TransformerDecoder,
)
from oseq.distributed.worker import SingleWorker
from oseq.encoders.encoder import Encoder
from oseq.layers.linear import Linear
from oseq.losses import BasicSequenceLoss, CTCLoss, MultiTaskCTCEntropyLoss
from oseq.models import Ensemble, Speech2Text
from oseq.optimizers.loss_scalers import StaticLossScaler
from oseq.optimizers.mp_wrapper import MixedPrecisionOptimizerWrapper
from oseq.search import BeamSearch, GreedySearch
from oseq.search.ctc_greedy import CTCGreedySearch
from oseq.training.train_step import TrainStep

SPEC = DataSpec(0, 9, num_features=3)
ATTENTION = {
    "num_hidden_layers": 1,
    "hidden_size": 8,
    "num_heads": 2,
    "filter_size": 16,
    "attention_dropout": 0.0,
    "relu_dropout": 0.0,
    "layer_postprocess_dropout": 0.0,
}
CTC = {"decoder": FullyConnectedCTCDecoder, "loss": CTCLoss}
ATTENDING = {
    "decoder": TransformerDecoder,
    "decoder_params": ATTENTION,
    "loss": BasicSequenceLoss,
}
JOINT = {
    "decoder": JointCTCAttentionDecoder,
    "decoder_params": {
        "ctc_decoder": FullyConnectedCTCDecoder,
        "attn_decoder": TransformerDecoder,
        "attn_decoder_params": ATTENTION,
    },
    "loss": MultiTaskCTCEntropyLoss,
    "loss_params": {"lambda_value": 0.5},
}


class EveryOther(Encoder):
    """Sees each second frame alone."""

    subsampling = 2

    def __init__(self, params, spec, policy):
        super().__init__(params, spec, policy, name="every_other")
        self.dense = Linear(8, name="dense", dtype=policy)

    def call(self, source, training=False):
        features = tf.cast(source["features"], self.compute_dtype)
        length = -(-source["length"] // 2)
        return {"outputs": self.dense(features[:, ::2]), "length": length}


def make_model(policy="float32", **params):
    model = Speech2Text({"encoder": EveryOther, **params}, SPEC, policy)
    model.build_weights()
    return model


def batch():
    features = np.random.default_rng(0).normal(size=(2, 11, 3)).astype(np.float32)
    return {
        "source": {
            "features": tf.constant(features),
            "length": tf.constant([11, 7]),
        },
        "target": {
            "ids": tf.constant([[4, 4, 5, 1], [6, 1, 0, 0]]),
            "length": tf.constant([4, 2]),
        },
        "id": tf.range(2, dtype=tf.int64),
    }


def alone(row):
    """Returns a batch of one utterance, without any padding."""
    both = batch()
    num_frames = both["source"]["length"][row]
    features = both["source"]["features"][row : row + 1, :num_frames]
    return {
        "source": {"features": features, "length": num_frames[tf.newaxis]},
        "id": both["id"][row : row + 1],
    }


@pytest.mark.parametrize("policy", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("parts", [CTC, ATTENDING, JOINT], ids=["ctc", "attn", "joint"])
def test_every_weight_gets_a_gradient_in_a_graph(parts, policy):
    model = make_model(policy, **parts)
    values = [variable.value for variable in model.trainable_variables]

    @tf.function(autograph=False)
    def gradients():
        with tf.GradientTape() as tape:
            loss = model.compute_loss(batch(), training=True)
            mean = loss.total / loss.weight
        return [tf.convert_to_tensor(each) for each in tape.gradient(mean, values)]

    for variable, gradient in zip(model.trainable_variables, gradients(), strict=True):
        dense = tf.cast(gradient, tf.float32).numpy()
        assert np.isfinite(dense).all() and dense.any(), variable.path


@pytest.mark.parametrize(
    ("parts", "search", "expected"),
    [
        (CTC, None, CTCGreedySearch),
        (ATTENDING, None, BeamSearch),
        (ATTENDING, GreedySearch, GreedySearch),
        (JOINT, None, BeamSearch),
        (JOINT, CTCGreedySearch, CTCGreedySearch),
    ],
)
def test_a_search_that_fits_the_decoder_is_taken(parts, search, expected):
    model = make_model(**parts, search=search)

    predictions = tf.function(model.generate)(batch())

    assert type(model.search) is expected
    assert predictions["ids"].shape[:2] == (2, 1)
    assert np.isfinite(predictions["score"]).all()


@pytest.mark.parametrize("parts", [CTC, ATTENDING, JOINT], ids=["ctc", "attn", "joint"])
def test_an_utterance_has_the_same_transcript_alone_and_in_a_batch(parts):
    model = make_model(**parts)

    predictions = model.generate(batch())

    assert np.all(predictions["length"] > 0)
    for row in range(2):
        single = model.generate(alone(row))
        size = int(predictions["length"][row, 0])
        assert int(single["length"][0, 0]) == size
        np.testing.assert_array_equal(
            single["ids"][0, 0], predictions["ids"][row, 0, :size]
        )


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({**CTC, "search": BeamSearch}, "BeamSearch .* use CTCGreedySearch"),
        ({**ATTENDING, "search": CTCGreedySearch}, "TransformerDecoder attends; use"),
        ({**ATTENDING, "loss": CTCLoss}, "CTCLoss reads .* CrossEntropyWithSmoothing"),
        ({**CTC, "loss": BasicSequenceLoss}, "makes those of frames; .* CTCLoss"),
        (
            {**JOINT, "loss": CTCLoss, "loss_params": {}},
            "frames and tokens; .* MultiTaskCTCEntropyLoss",
        ),
    ],
)
def test_parts_that_do_not_fit_are_refused_with_those_that_do(parts, message):
    with pytest.raises(ConfigError, match=message):
        make_model(**parts)


def test_ctc_scores_the_frames_that_the_encoder_makes():
    model = make_model(**CTC)

    frames = model.score_frames(model.encoder(batch()["source"]))

    assert frames["logits"].shape == (2, 6, 9)
    assert np.array_equal(frames["length"], [6, 4])


def test_limits_of_the_length_are_those_of_the_encoders_positions():
    """Not of the frames of its source, of which each position is two."""
    limits = {"extra_decode_length": 0, "min_length_ratio": 1.0}
    model = make_model(**ATTENDING, search=BeamSearch, search_params=limits)

    assert np.array_equal(model.generate(batch())["length"], [[6], [4]])


def test_thousands_of_frames_train_in_16_bits():
    """More than a thousand frames of float16, a few updates."""
    model = make_model("float16", **CTC)
    optimizer = MixedPrecisionOptimizerWrapper(
        keras.optimizers.SGD(1e-5), StaticLossScaler(1.0)
    )
    optimizer.build(model.trainable_variables)
    features = np.random.default_rng(0).normal(size=(1, 3001, 3)).astype(np.float32)
    target = {"ids": batch()["target"]["ids"][:1], "length": tf.constant([4])}
    long = {
        "source": {"features": tf.constant(features), "length": tf.constant([3001])},
        "target": target,
        "id": tf.range(1, dtype=tf.int64),
    }
    step = TrainStep(model, optimizer, SingleWorker(), model.trainable_variables)
    batches = iter(tf.data.Dataset.from_tensors(long).repeat())

    losses = []
    for _ in range(4):
        result = step(batches)
        assert result.update.applied
        losses.append(float(result.loss))

    assert np.all(np.diff(losses) < 0)
    assert np.isfinite(model(long)["logits"]).all()


def test_scores_of_tokens_are_those_of_the_half_that_attends():
    scored = make_model(**JOINT).score(batch())

    assert scored.log_probability.shape == (2, 4)
    with pytest.raises(ConfigError, match="scores frames, not the tokens"):
        make_model(**CTC).score(batch())
    with pytest.raises(ConfigError, match="choose a decoder with a CTC output"):
        make_model(**ATTENDING).generate_timed(batch())


def test_models_that_score_frames_do_not_decode_together():
    members = [make_model(**CTC) for _ in range(2)]

    with pytest.raises(ConfigError, match="step by step"):
        Ensemble(members, members[0].search)


def test_joint_models_decode_and_are_judged_together():
    members = [make_model(**JOINT) for _ in range(2)]
    ensemble = Ensemble(members, members[0].search)

    outputs = ensemble(batch())

    for half in (lambda each: each, lambda each: each["ctc"]):
        of_members = [tf.nn.softmax(half(each(batch()))["logits"]) for each in members]
        np.testing.assert_allclose(
            tf.exp(half(outputs)["logits"]), np.mean(of_members, axis=0), rtol=1e-4
        )
    loss = ensemble.compute_loss(batch())
    expected = members[0].loss(outputs, batch()["target"])
    assert loss.total == expected.total and loss.parts["num_impossible"] == 0


def test_members_attend_to_positions_of_the_same_length():
    class EveryFrame(EveryOther):
        subsampling = 1

    members = [make_model(**ATTENDING)]
    members.append(make_model(**{**ATTENDING, "encoder": EveryFrame}))

    with pytest.raises(ConfigError, match="different numbers of frames"):
        Ensemble(members, members[0].search)


def test_without_jiwer_a_model_can_be_had_but_not_be_judged(monkeypatch):
    monkeypatch.setitem(sys.modules, "jiwer", None)
    model = make_model(**CTC)

    with pytest.raises(UserError, match=r"pip install oseq\[speech\]"):
        model.check_evaluation()


def test_xla_is_known_not_to_compile_ctc():
    assert make_model(**ATTENDING).works_in_xla
    assert not make_model(**CTC).works_in_xla
    assert not make_model(**JOINT).works_in_xla


def test_error_rates_are_of_the_best_hypotheses_in_percent():
    results = [
        Result(0, "a.wav", "one two", ["one too", "one two"], [0.0, -1.0]),
        Result(1, "b.wav", "no", ["no", "yes"], [0.0, -1.0]),
    ]

    metrics = make_model(**CTC).evaluate(results)

    assert set(metrics) == set(Speech2Text.metric_names)
    assert metrics["WER"] == pytest.approx(100 / 3)
    assert metrics["CER"] == pytest.approx(100 / 9)
    assert metrics["exact_match"] == 50.0


@pytest.mark.parametrize("parts", [CTC, JOINT], ids=["ctc", "joint"])
def test_hypotheses_have_spans_in_their_source(parts):
    """Output frames are two source positions each; the last one of 11 has but one."""
    model = make_model(**parts)

    predictions = tf.function(model.generate_timed)(batch())

    spans, size = predictions["spans"].numpy(), predictions["length"].numpy()
    assert spans.shape == (*predictions["ids"].shape, 2)
    for row, end in ((0, 11), (1, 7)):
        said, padding = np.split(spans[row, 0], [size[row, 0]])
        assert np.all(padding == -1)
        if (said == -1).all():  # attention said more than there are frames
            assert parts is JOINT
            continue
        assert np.all(said[:, 0] % 2 == 0)
        assert np.all((said[:, 1] % 2 == 1) | (said[:, 1] == end - 1))
        assert np.all(said[1:, 0] > said[:-1, 1]) and said.max() < end
    np.testing.assert_array_equal(predictions["ids"], model.generate(batch())["ids"])

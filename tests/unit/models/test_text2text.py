"""An encoder-decoder model: what it shares, builds, inherits and generates."""

from __future__ import annotations

import logging

import keras
import numpy as np
import pytest
import tensorflow as tf

from oseq.config.params import ConfigError
from oseq.contracts import DataSpec, Result
from oseq.decoders import ConvS2SDecoder, TransformerDecoder
from oseq.encoders import ConvS2SEncoder, TransformerEncoder
from oseq.losses import PaddedCrossEntropyLossWithSmoothing
from oseq.models import Text2Text

JOINT = DataSpec(9, 9, joint_vocabulary=True)
SEPARATE = DataSpec(11, 9)
SIZES = {
    "hidden_size": 8,
    "num_heads": 2,
    "filter_size": 12,
    "attention_dropout": 0.1,
    "relu_dropout": 0.1,
    "layer_postprocess_dropout": 0.1,
}
EXTRA_LENGTH = 3


def make_model(
    spec=SEPARATE, policy="float32", encoder=None, decoder=None, search=None, **params
):
    params = {
        "encoder": TransformerEncoder,
        "encoder_params": {**SIZES, "encoder_layers": 1, **(encoder or {})},
        "decoder": TransformerDecoder,
        "decoder_params": {
            **SIZES,
            "num_hidden_layers": 1,
            **(decoder or {}),
        },
        "search_params": {"extra_decode_length": EXTRA_LENGTH, **(search or {})},
        "loss": PaddedCrossEntropyLossWithSmoothing,
        "loss_params": {"label_smoothing": 0.1},
        **params,
    }
    model = Text2Text(params, spec, policy)
    model.build_weights()
    return model


def batch(rows=2):
    source = {"ids": [[5, 7, 4, 1], [8, 1, 0, 0]], "length": [4, 2]}
    target = {"ids": [[4, 8, 1], [6, 1, 0]], "length": [3, 2]}
    sides = {"source": source, "target": target}
    return {
        name: {key: tf.constant(value)[:rows] for key, value in side.items()}
        for name, side in sides.items()
    } | {"id": tf.range(rows, dtype=tf.int64)}


@pytest.fixture(scope="module")
def model():
    return make_model()


def tables(model):
    paths = [variable.path for variable in model.trainable_variables]
    return [path for path in paths if path.endswith("/table")]


def test_a_joint_vocabulary_has_one_table():
    model = make_model(JOINT)

    assert tables(model) == ["text2text/transformer_encoder/input/embedding/table"]
    assert model.decoder.embedding is model.encoder.embedding


@pytest.mark.parametrize(
    ("spec", "params"), [(SEPARATE, {}), (JOINT, {"share_embeddings": False})]
)
def test_separate_vocabularies_or_the_wish_for_it_make_two_tables(spec, params):
    assert len(tables(make_model(spec, **params))) == 2


def test_sharing_is_refused_where_the_widths_differ():
    with pytest.raises(ConfigError, match="set share_embeddings to False"):
        make_model(JOINT, encoder={"hidden_size": 16})


def test_a_joint_table_learns_from_both_sides_and_from_the_output():
    model = make_model(JOINT)
    table = model.encoder.embedding.table.value
    with tf.GradientTape() as tape:
        loss = model.compute_loss(batch(), training=True)

    gradient = tf.convert_to_tensor(tape.gradient(loss.total, table)).numpy()
    used = {5, 7, 8, 4, 6, 1, JOINT.bos_id}
    assert gradient[sorted(used)].any(axis=1).all()


@pytest.mark.parametrize(("beam_size", "policy"), [(1, "float32"), (3, "bfloat16")])
def test_build_weights_makes_all_that_later_calls_need(beam_size, policy):
    model = make_model(
        policy=policy,
        decoder={"tie_embeddings": False},
        search={"beam_size": beam_size},
    )
    before = [variable.path for variable in model.variables]

    tf.function(model.generate)(batch())
    model.compute_loss(batch(), training=True)

    assert [variable.path for variable in model.variables] == before
    assert len(set(before)) == len(before)


@pytest.mark.parametrize("policy", ["float32", "float16", "bfloat16"])
def test_every_weight_gets_a_gradient_from_the_loss(policy):
    model = make_model(policy=policy)
    with tf.GradientTape() as tape:
        loss = model.compute_loss(batch(), training=True)
        mean = loss.total / loss.weight
    values = [variable.value for variable in model.trainable_variables]

    gradients = tape.gradient(mean, values)

    for variable, gradient in zip(model.trainable_variables, gradients, strict=True):
        dense = tf.cast(tf.convert_to_tensor(gradient), tf.float32).numpy()
        assert np.isfinite(dense).all() and dense.any(), variable.path


def test_the_loss_is_that_of_the_logits(model):
    outputs = model(batch())
    target = batch()["target"]
    without_projection = {"logits": outputs["logits"]}

    expected = model.loss(without_projection, target)

    actual = model.compute_loss(batch())
    np.testing.assert_allclose(actual.total, expected.total, rtol=1e-5)
    assert actual.weight == 5


def test_components_inherit_the_models_initializer_and_regularizer_or_have_their_own():
    model = make_model(
        initializer=keras.initializers.Constant,
        initializer_params={"value": 0.5},
        regularizer=keras.regularizers.L2,
        regularizer_params={"l2": 0.25},
        decoder={
            "initializer": keras.initializers.Constant,
            "initializer_params": {"value": 2.0},
            "regularizer": keras.regularizers.L1,
        },
    )
    seen = {"transformer_encoder": 0, "transformer_decoder": 0}

    for variable in model.trainable_variables:
        if variable.name not in ("kernel", "table"):
            continue
        _, side, *_ = variable.path.split("/")
        is_encoder = side == "transformer_encoder"
        seen[side] += 1
        assert np.all(variable.numpy() == (0.5 if is_encoder else 2.0)), variable.path
        kind = keras.regularizers.L2 if is_encoder else keras.regularizers.L1
        assert type(variable.regularizer) is kind
        if is_encoder:
            assert variable.regularizer.l2 == 0.25
    assert seen == {"transformer_encoder": 5, "transformer_decoder": 8}


def test_layers_of_one_initializer_start_differently():
    model = make_model(
        encoder={"encoder_layers": 2}, initializer=keras.initializers.GlorotUniform
    )

    first, second = (layer.feed_forward.inner.kernel for layer in model.encoder.stack)

    assert not np.array_equal(first, second)


def test_a_seed_that_would_make_all_layers_equal_is_refused():
    with pytest.raises(ConfigError, match="random_seed"):
        make_model(
            initializer=keras.initializers.GlorotUniform, initializer_params={"seed": 3}
        )


@pytest.mark.parametrize(
    ("side", "params", "message"),
    [
        ("encoder", {"num_heads": 3}, "not divisible by num_heads 3"),
        ("decoder", {"num_heads": 3}, "not divisible by num_heads 3"),
        ("search", {"beam_size": 2, "num_best": 3}, "more than beam_size 2"),
    ],
)
def test_values_that_do_not_fit_together_are_refused(side, params, message):
    with pytest.raises(ConfigError, match=message):
        make_model(**{side: params})


@pytest.mark.parametrize(
    ("search", "hypotheses"),
    [
        ({}, 1),
        ({"beam_size": 3}, 1),
        ({"beam_size": 3, "num_best": 2, "alpha": 0.6}, 2),
        ({"beam_size": 2, "length_penalty": "average", "alpha": 1.0}, 1),
    ],
)
def test_generate_returns_the_asked_number_of_hypotheses(search, hypotheses):
    model = make_model(search=search)

    predictions = model.generate(batch())

    ids, length = predictions["ids"].numpy(), predictions["length"].numpy()
    longest = length.max()
    assert ids.shape == (2, hypotheses, longest) and ids.dtype == np.int32
    assert length.shape == predictions["score"].shape == (2, hypotheses)
    assert np.all(length <= np.array([[4], [2]]) + EXTRA_LENGTH)
    beyond = np.arange(longest) >= length[..., None]
    assert np.all(ids[beyond] == SEPARATE.pad_id)
    special = [SEPARATE.pad_id, SEPARATE.eos_id, SEPARATE.bos_id]
    assert not np.isin(ids[~beyond], special).any()
    score = predictions["score"].numpy()
    assert np.all(np.isfinite(score)) and np.all(np.diff(score, axis=1) <= 0)


def test_generate_needs_no_target_and_scores_what_the_model_scores(model):
    """The greedy score is the log-probability of its tokens, PAD and BOS excluded."""
    source = batch()["source"]

    predictions = model.generate({"source": source, "id": batch()["id"]})

    for row in range(2):
        length = int(predictions["length"][row, 0])
        ids = [*predictions["ids"][row, 0, :length].numpy(), SEPARATE.eos_id]
        alone = {key: value[row : row + 1] for key, value in source.items()}
        target = {"ids": tf.constant([ids]), "length": tf.constant([len(ids)])}
        logits = model({"source": alone, "target": target})["logits"][0].numpy()
        logits[:, [SEPARATE.pad_id, SEPARATE.bos_id]] = -np.inf
        log_probabilities = tf.nn.log_softmax(logits).numpy()
        score = log_probabilities[np.arange(len(ids)), ids].sum()
        assert float(predictions["score"][row, 0]) == pytest.approx(score, rel=1e-4)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_batch_of_no_sentences_is_computed(beam_size):
    model = make_model(search={"beam_size": beam_size})

    loss = model.compute_loss(batch(0), training=True)
    predictions = model.generate(batch(0))

    assert loss.total == 0 and loss.weight == 0
    assert predictions["ids"].shape[:2] == (0, 1)


def test_a_sentence_is_translated_alike_in_any_batch(model):
    together = model.generate(batch())
    alone = model.generate(batch(1))

    np.testing.assert_array_equal(together["ids"][0], alone["ids"][0])
    np.testing.assert_allclose(together["score"][0], alone["score"][0], rtol=1e-4)


def test_an_empty_source_is_translated_alike_in_any_batch(model):
    """Padding is not looked at, however much of it there is."""
    empty = {"ids": np.zeros([1, 1], np.int32), "length": np.zeros([1], np.int32)}
    alone = batch(1) | {"source": empty}
    together = batch(2) | {
        "source": {
            "ids": np.array([[0, 0, 0, 0], [5, 6, 7, 1]], np.int32),
            "length": np.array([0, 4], np.int32),
        }
    }

    few, many = model.generate(alone), model.generate(together)

    shortest = few["ids"].shape[-1]
    np.testing.assert_array_equal(few["ids"][0], many["ids"][0][..., :shortest])
    np.testing.assert_allclose(few["score"][0], many["score"][0], rtol=1e-4)


def test_evaluate_tells_how_it_scored(model, caplog):
    """Signatures: BLEU is of cased, untokenized lines, tokenized by sacrebleu."""
    text = "A small <<unk>> dog, running."
    with caplog.at_level(logging.INFO):
        metrics = model.evaluate([Result(0, "", text, [text], [0.0])])

    assert metrics["exact_match"] == 100
    assert set(metrics) == set(model.metric_names)
    assert "BLEU: nrefs:1|case:mixed|eff:no|tok:13a" in caplog.text
    assert "chrF: nrefs:1|case:mixed" in caplog.text


def test_evaluate_scores_the_best_hypotheses(model):
    def result(hypotheses, reference):
        return Result(0, "", reference, hypotheses, [0.0] * len(hypotheses))

    sentence = "a small dog runs over the green grass"
    perfect = model.evaluate([result([sentence, "x"], sentence)] * 2)
    mixed = model.evaluate(
        [result([sentence], sentence), result(["x", sentence], sentence)]
    )

    assert model.best_metric == "BLEU"
    assert perfect == pytest.approx({"BLEU": 100, "chrF": 100, "exact_match": 100})
    assert mixed["exact_match"] == 50
    assert 0 < mixed["BLEU"] < 100 and 0 < mixed["chrF"] < 100


def test_mistakes_of_all_components_are_reported_at_once():
    with pytest.raises(ConfigError) as error:
        make_model(
            encoder={"hidden_sizee": 8, "norm_params": {"type": "layernorm_l2"}},
            decoder={"initializer": "glorot_uniform"},
        )

    message = str(error.value)
    assert "hidden_sizee: unknown key; did you mean hidden_size?" in message
    assert "norm_params/type" in message and "layernorm_L2" in message
    assert "decoder_params/initializer" in message


def test_float_inputs_keep_their_dtype(model):
    assert model.autocast is False  # K8


@pytest.mark.parametrize("num_layers", [1, 2])
def test_an_encoder_that_expects_another_depth_of_the_decoder_is_warned_of(
    num_layers, caplog
):
    keep_probs = dict.fromkeys(
        ("embedding_dropout_keep_prob", "hidden_dropout_keep_prob"), 1.0
    )
    params = {
        "encoder": ConvS2SEncoder,
        "encoder_params": {
            "src_emb_size": 8,
            "conv_nchannels_kwidth": [(8, 3)],
            **keep_probs,
        },
        "decoder": ConvS2SDecoder,
        "decoder_params": {
            "tgt_emb_size": 8,
            "conv_nchannels_kwidth": [(8, 3)] * num_layers,
            "out_dropout_keep_prob": 1.0,
            **keep_probs,
        },
        "loss": PaddedCrossEntropyLossWithSmoothing,
    }
    Text2Text(params, SEPARATE, "float32")

    warning = "att_layer_num is 1, but 2 layers"
    assert (warning in caplog.text) == (num_layers == 2)

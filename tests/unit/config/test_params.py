from __future__ import annotations

import math

import pytest

from oseq.config.params import (
    ConfigError,
    Param,
    check_params,
    find_problems,
    schema_of,
)


class Encoder:
    @staticmethod
    def get_required_params():
        return {"hidden_size": Param(int, "width", minimum=1)}

    @staticmethod
    def get_optional_params():
        return {
            "dropout": Param(float, "share of units", default=0.1, minimum=0),
            "norm": Param(["pre", "post"], "where the norm stands", default="pre"),
            "activation": Param(callable, "function", default=abs),
            "seed": Param(int, "seed, None for a random one"),
            "use_bias": Param(bool, "bias or none", default=True),
            "kernels": Param(list[int], "kernel sizes", default=[3]),
        }


class Model:
    @staticmethod
    def get_required_params():
        return {"encoder": Param(type, "class of the encoder")}

    @staticmethod
    def get_optional_params():
        return {
            "encoder_params": Param(
                dict, "keys of the encoder", default={}, schema_of="encoder"
            ),
            "loss": Param(type, "class of the loss"),
            "loss_params": Param(dict, "keys of the loss", {}, schema_of="loss"),
            "penalty": Param((float, ["auto"]), "number or auto", default="auto"),
        }


class Adam:
    def __init__(self, learning_rate=0.1, beta_1=0.9, decay=None, name=None, **kwargs):
        pass

    def apply_gradients(self):
        pass


def poly_decay(global_step, learning_rate, decay_steps, power: float = 1, min_lr=0):
    pass


def problems_of(component, params):
    return find_problems(component, params, "base_params")


def test_defaults_are_filled_in():
    params = check_params(Encoder, {"hidden_size": 8})
    assert params["dropout"] == 0.1
    assert params["norm"] == "pre"
    assert params["seed"] is None


def test_a_complete_dict_passes_unchanged():
    once = check_params(
        Model, {"encoder": Encoder, "encoder_params": {"hidden_size": 8}}
    )
    assert check_params(Model, once) == once


def test_the_result_is_read_only_at_every_depth():
    params = check_params(
        Model, {"encoder": Encoder, "encoder_params": {"hidden_size": 8}}
    )
    with pytest.raises(TypeError):
        params["encoder"] = None
    with pytest.raises(TypeError):
        params["encoder_params"]["hidden_size"] = 9


def test_nested_dicts_are_completed_by_the_class_of_their_sibling():
    params = check_params(
        Model, {"encoder": Encoder, "encoder_params": {"hidden_size": 8}}
    )
    assert params["encoder_params"]["dropout"] == 0.1


def test_the_users_dicts_are_left_alone():
    nested = {"hidden_size": 8}
    check_params(Model, {"encoder": Encoder, "encoder_params": nested})
    assert nested == {"hidden_size": 8}


def test_all_problems_are_reported_at_once_with_path_and_suggestion():
    with pytest.raises(ConfigError) as error:
        check_params(
            Model,
            {
                "encoder": Encoder,
                "encoder_params": {"hidden_sizee": 8, "dropout": "much"},
                "encodr": 1,
            },
            "base_params",
        )
    text = str(error.value)
    assert "base_params/encodr: unknown key; did you mean encoder?" in text
    assert (
        "base_params/encoder_params/hidden_sizee: unknown key; "
        "did you mean hidden_size?" in text
    )
    assert "base_params/encoder_params/hidden_size: missing; width" in text
    assert (
        "base_params/encoder_params/dropout: expected a number, got 'much' (str)"
        in text
    )
    assert len(error.value.problems) == 4


def test_without_a_path_the_component_names_itself():
    with pytest.raises(ConfigError, match="^Encoder/hidden_size: missing"):
        check_params(Encoder, {})


def test_an_omitted_nested_dict_still_lacks_its_required_keys():
    (problem,) = problems_of(Model, {"encoder": Encoder})
    assert problem == "base_params/encoder_params/hidden_size: missing; width"


def test_params_of_a_component_that_is_not_there_are_refused():
    problems = problems_of(
        Model,
        {
            "encoder": Encoder,
            "encoder_params": {"hidden_size": 8},
            "loss_params": {"smoothing": 0.1},
        },
    )
    assert problems == ["base_params/loss_params: given, but loss is not"]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("dropout", 1),
        ("dropout", 0.5),
        ("hidden_size", 3),
        ("seed", None),
        ("norm", "post"),
        ("activation", lambda x: x),
        ("activation", Encoder),
        ("kernels", [1, 2]),
        ("kernels", (1, 2)),
        ("kernels", []),
        ("use_bias", False),
    ],
)
def test_accepted_values(key, value):
    assert problems_of(Encoder, {"hidden_size": 8, key: value}) == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("dropout", True),
        ("dropout", None),
        ("dropout", -0.5),
        ("dropout", math.nan),
        ("hidden_size", True),
        ("hidden_size", 0),
        ("hidden_size", 8.0),
        ("hidden_size", None),
        ("norm", "prre"),
        ("activation", "relu"),
        ("kernels", [1, "2"]),
        ("kernels", 3),
        ("use_bias", 1),
    ],
)
def test_refused_values(key, value):
    (problem,) = problems_of(Encoder, {"hidden_size": 8, key: value})
    assert problem.startswith(f"base_params/{key}: ")


def test_alternatives_may_be_a_type_or_one_of_some_values():
    base = {"encoder": Encoder, "encoder_params": {"hidden_size": 8}}
    assert problems_of(Model, base | {"penalty": 2}) == []
    assert problems_of(Model, base | {"penalty": "auto"}) == []
    (problem,) = problems_of(Model, base | {"penalty": "autoo"})
    assert "a number or one of 'auto'" in problem


def test_something_that_is_no_dict_is_refused():
    (problem,) = problems_of(Encoder, ["hidden_size"])
    assert "expected a dict" in problem


def test_an_optimizers_signature_is_its_schema_without_what_oseq_sets():
    assert list(schema_of(Adam)) == ["beta_1", "decay"]
    (problem,) = problems_of(Adam, {"beta1": 0.9})
    assert problem == "base_params/beta1: unknown key; did you mean beta_1?"
    (problem,) = problems_of(Adam, {"learning_rate": 0.1})
    assert problem == "base_params/learning_rate: not set here but by lr_policy"
    assert check_params(Adam, {"beta_1": 0.8}) == {"beta_1": 0.8}


def test_where_a_class_hands_kwargs_on_its_bases_parameters_count():
    class Momentum(Adam):
        def __init__(self, momentum=0.9, **kwargs):
            pass

    assert list(schema_of(Momentum)) == ["momentum", "beta_1", "decay"]


def test_a_policys_injected_keys_are_not_required():
    (problem,) = problems_of(poly_decay, {})
    assert problem.startswith("base_params/learning_rate: missing")
    assert check_params(poly_decay, {"learning_rate": 1, "power": 2}) == {
        "learning_rate": 1,
        "power": 2,
    }
    assert problems_of(poly_decay, {"learning_rate": 1, "power": "x"})
    assert not problems_of(poly_decay, {"learning_rate": 1, "decay_steps": 100})


def test_a_number_that_is_too_large_already_is_refused():
    class Layer:
        get_required_params = staticmethod(dict)
        get_optional_params = staticmethod(
            lambda: {"dropout": Param(float, "a rate", 0.0, minimum=0, below=1)}
        )

    assert check_params(Layer, {"dropout": 0.99})["dropout"] == 0.99
    with pytest.raises(ConfigError, match="dropout: must be below 1, got 1.0"):
        check_params(Layer, {"dropout": 1.0})


def test_a_share_that_is_kept_is_above_0_and_at_most_1():
    class Layer:
        get_required_params = staticmethod(dict)
        get_optional_params = staticmethod(
            lambda: {"keep": Param(float, "a share", 1.0, above=0, maximum=1)}
        )

    assert check_params(Layer, {"keep": 1})["keep"] == 1.0
    assert find_problems(Layer, {"keep": 0}, "x") == ["x/keep: must be above 0, got 0"]
    assert find_problems(Layer, {"keep": 1.5}, "x") == [
        "x/keep: must be at most 1, got 1.5"
    ]
    assert find_problems(Layer, {"keep": math.nan}, "x")


def test_a_whole_number_becomes_the_number_that_is_declared():
    """TensorFlow refuses to mix 1 and 1.0."""

    class Component:
        @staticmethod
        def get_required_params():
            return {"rate": Param(float, "a rate")}

        @staticmethod
        def get_optional_params():
            return {"count": Param(int, "a count", 2), "other": Param(float, "or None")}

    params = check_params(Component, {"rate": 1})

    assert [type(value) for value in params.values()] == [float, int, type(None)]


class Stack:
    @staticmethod
    def get_required_params():
        return {"layers": Param(list[dict], "from the bottom", schema_of=Encoder)}

    @staticmethod
    def get_optional_params():
        return {}


def test_each_dict_of_a_list_is_completed_and_read_only():
    layers = check_params(Stack, {"layers": [{"hidden_size": 8}] * 2})["layers"]

    assert [layer["norm"] for layer in layers] == ["pre", "pre"]
    with pytest.raises(TypeError):
        layers[0]["norm"] = "post"
    assert check_params(Stack, {"layers": layers})["layers"] == layers


def test_a_problem_in_a_list_of_dicts_is_reported_with_its_place():
    layers = [{"hidden_size": 8}, {"hiden_size": 8, "norm": "Post"}, 3]

    problems = find_problems(Stack, {"layers": layers[:2]}, "encoder_params")

    assert problems == [
        "encoder_params/layers[1]/hiden_size: unknown key; did you mean hidden_size?",
        "encoder_params/layers[1]/hidden_size: missing; width",
        "encoder_params/layers[1]/norm: expected one of 'pre', 'post', "
        "got 'Post' (str); did you mean post?",
    ]
    (problem,) = find_problems(Stack, {"layers": layers}, "encoder_params")
    assert problem.startswith("encoder_params/layers: expected a list, each a dict")

from __future__ import annotations

import pytest

from oseq.config.loader import load_config
from oseq.config.overrides import Override, parse_overrides
from oseq.config.params import ConfigError


@pytest.fixture
def value_of(toy_dir):
    """Returns the value that a key has after one setting."""

    def read(argument, *path):
        config = load_config(toy_dir / "toy.py", parse_overrides([argument]))
        config.check("train")
        value = config.params("train")
        for key in path or argument[2:].partition("=")[0].split("/"):
            value = value[key]
        return value

    return read


def test_both_spellings_are_read():
    assert parse_overrides(["--a/b=1", "--c", "x=y", "--d", "-3", "--e", "--f="]) == [
        Override(("a", "b"), "1"),
        Override(("c",), "x=y"),
        Override(("d",), "-3"),
        Override(("e",), None),
        Override(("f",), ""),
    ]


def test_words_without_a_key_are_refused():
    with pytest.raises(ConfigError, match="stray: neither a flag"):
        parse_overrides(["stray"])


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ("--max_steps=7", 7),
        ("--lr_policy_params/learning_rate=1e-4", 1e-4),
        ("--lr_policy_params/decay_steps=50", 50),
        ("--optimizer_params/amsgrad=true", True),
        ("--encoder_params/dropout=1", 1.0),
        ("--encoder_params/sizes=[1, 2]", [1, 2]),
        ("--encoder_params/extra/rate=3", 3),
        ("--data_layer_params/source_file=1.txt", "1.txt"),
        ("--data_layer_params/source_file=7", "7"),
        ("--data_layer_params/source_file=[x.txt, y.txt]", ["x.txt", "y.txt"]),
        ("--data_layer_params/source_file=['x', 'y']", ["x", "y"]),
        ("--max_grad_norm=None", None),
        ("--load_model=None", None),
        ("--logdir=None", "None"),
        ("--dtype=tf.float32", "float32"),
        ("--dtype=mixed", "mixed"),
        ("--larc_params/larc_eta=0.01", 0.01),
        ("--loss_scaling=512", 512),
        ("--loss_scaling=Backoff", "Backoff"),
        ("--optimizer=Adam", "Adam"),
    ],
)
def test_values_are_read_as_the_schema_says(value_of, argument, expected):
    value = value_of(argument)
    assert value == expected
    assert type(value) is type(expected)


def test_a_class_is_given_by_its_path(value_of):
    encoder = value_of("--encoder=toy_components.WideEncoder")
    assert encoder.__name__ == "WideEncoder"
    (hook,) = value_of("--hooks=[toy_components.ToyHook]")
    assert hook.__name__ == "ToyHook"
    function = value_of("--encoder_params/activation=tf.nn.tanh")
    assert callable(function)


def test_a_class_decides_which_keys_its_params_have(toy_dir):
    arguments = ["--encoder_params/factor=3", "--encoder=toy_components.WideEncoder"]
    config = load_config(toy_dir / "toy.py", parse_overrides(arguments))
    config.check("train")
    assert config.params("train")["encoder_params"]["factor"] == 3


@pytest.mark.parametrize(
    ("argument", "problem"),
    [
        ("--max_steps=x", "--max_steps: expected a whole number, got 'x' (str)"),
        ("--max_steps=0", "--max_steps: must be at least 1, got 0"),
        ("--max_steps=1.5", "--max_steps: expected a whole number, got 1.5 (float)"),
        ("--max_steps", "--max_steps: needs a value"),
        (
            "--encoder_params/dropou=1",
            "--encoder_params/dropou: unknown key; "
            "did you mean --encoder_params/dropout?",
        ),
        ("--max=1", "--max: unknown key"),
        ("--max_steps/x=1", "--max_steps/x: max_steps holds 100, not a dict"),
        ("--encoder=ToyEncoder", "--encoder: expected a class, got 'ToyEncoder' (str)"),
        (
            "--encoder=toy_components.ToyEncoderr",
            "--encoder: toy_components.ToyEncoderr: toy_components has no "
            "ToyEncoderr; did you mean ToyEncoder?",
        ),
        (
            "--encoder=nowhere.Encoder",
            "--encoder: nowhere.Encoder: there is no module nowhere",
        ),
    ],
)
def test_mistakes_name_the_flag(toy_dir, argument, problem):
    config = load_config(toy_dir / "toy.py", parse_overrides([argument]))
    with pytest.raises(ConfigError) as error:
        config.check("train")
    assert error.value.problems == [problem]


def test_a_key_need_not_exist_in_every_mode(toy_dir):
    text = (toy_dir / "toy.py").read_text() + (
        "\nfrom toy_components import WideEncoder\n"
        "base_params['eval_steps'] = 5\n"
        "eval_params['encoder'] = WideEncoder\n"
    )
    (toy_dir / "wide.py").write_text(text)
    overrides = parse_overrides(["--encoder_params/factor=5"])
    config = load_config(toy_dir / "wide.py", overrides)
    config.check("train_eval")
    assert config.params("eval")["encoder_params"]["factor"] == 5
    assert "factor" not in config.params("train")["encoder_params"]
    with pytest.raises(ConfigError):
        config.check("train")

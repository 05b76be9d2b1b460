from __future__ import annotations

from oseq.config.help import help_text
from oseq.config.loader import load_config
from oseq.config.overrides import parse_overrides


def test_every_key_stands_with_type_default_and_meaning(toy_dir):
    text = help_text(load_config(toy_dir / "toy.py"))
    assert "  logdir: a string; required\n      directory of" in text
    assert "  iter_size: a whole number, at least 1; default 1\n" in text
    assert "encoder_params: ToyEncoder\n" in text
    assert "  dropout: a number; default 0.1\n      share of units" in text
    assert "  hidden_size: a whole number, at least 1; required\n" in text
    assert "optimizer_params: ToyOptimizer\n" in text
    assert "      see ToyOptimizer; its default is 0.9" in text
    assert "larc_params: LarcParams\n" in text
    assert "  activation: a function or class; default builtins.abs\n" in text


def test_a_config_with_mistakes_still_gets_help(toy_dir):
    text = (toy_dir / "toy.py").read_text() + "\nbase_params['max_stepss'] = 'x'"
    (toy_dir / "bad.py").write_text(text)
    assert "max_steps" in help_text(load_config(toy_dir / "bad.py"))


def test_the_class_of_the_command_line_is_the_one_explained(toy_dir):
    overrides = parse_overrides(["--encoder=toy_components.WideEncoder"])
    text = help_text(load_config(toy_dir / "toy.py", overrides))
    assert "encoder_params: WideEncoder\n" in text
    assert "  factor: a whole number; default 2\n" in text

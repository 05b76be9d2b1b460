from __future__ import annotations

import pytest

from oseq.config.loader import load_config
from oseq.config.params import ConfigError


def error_of(path, text):
    path.write_text(text)
    with pytest.raises(ConfigError) as error:
        load_config(path)
    return str(error.value)


def test_python_and_yaml_files_say_the_same(toy_dir):
    from_python = load_config(toy_dir / "toy.py")
    from_yaml = load_config(toy_dir / "toy.yaml")
    assert from_python.base_model is from_yaml.base_model
    for mode in ("train", "eval"):
        assert from_python.params(mode) == from_yaml.params(mode)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ConfigError, match="nope.py does not exist"):
        load_config(tmp_path / "nope.py")


def test_a_syntax_error_is_reported_with_its_line(tmp_path):
    message = error_of(tmp_path / "bad.py", "x = 1\ny = = 2\n")
    assert "bad.py:2: invalid syntax" in message


def test_an_error_while_running_the_file_is_reported_with_its_line(tmp_path):
    message = error_of(tmp_path / "bad.py", "x = 1\n\ny = undefined\n")
    assert "bad.py:3: NameError: name 'undefined' is not defined" in message


def test_missing_parts_are_all_named(tmp_path):
    message = error_of(tmp_path / "empty.py", "x = 1\n")
    assert "base_model: missing" in message
    assert "base_params: missing" in message


def test_params_that_are_no_dict_are_refused(toy_dir):
    message = error_of(
        toy_dir / "bad.py", (toy_dir / "toy.py").read_text() + "\neval_params = 3"
    )
    assert "eval_params: expected a dict, got 3" in message


@pytest.mark.parametrize("name", ["trian_params", "interactive_infer_params"])
def test_a_dict_that_nothing_would_read_is_refused(toy_dir, name):
    text = (toy_dir / "toy.py").read_text()
    assert f"{name}: " in error_of(toy_dir / "bad.py", f"{text}\n{name} = {{}}")


def test_a_python_file_may_have_dicts_of_its_own(toy_dir):
    text = (toy_dir / "toy.py").read_text() + "\nencoder_params = {'x': 1}"
    (toy_dir / "own.py").write_text(text)
    load_config(toy_dir / "own.py").check("train")


def test_a_yaml_file_has_no_other_names(toy_dir):
    text = (toy_dir / "toy.yaml").read_text() + "\nevaluation_params: {}"
    assert "evaluation_params: unknown" in error_of(toy_dir / "bad.yaml", text)


def test_yaml_runs_no_code(tmp_path):
    text = "base_model: !!python/object/apply:os.getcwd []"
    assert "not valid YAML" in error_of(tmp_path / "bad.yaml", text)


def test_a_key_that_stands_twice_in_yaml_is_refused(tmp_path):
    text = "base_params:\n  a: 1\n  a: 2\n"
    assert "a stands twice in one dict" in error_of(tmp_path / "bad.yaml", text)


def test_yaml_anchors_may_be_merged_and_overridden(toy_dir):
    text = (toy_dir / "toy.yaml").read_text() + (
        "train_params: &own {max_steps: 5, random_seed: 1}\n"
        "infer_params: {<<: *own, random_seed: 2}\n"
    )
    (toy_dir / "merged.yaml").write_text(text)
    params = load_config(toy_dir / "merged.yaml").params("infer")
    assert (params["max_steps"], params["random_seed"]) == (5, 2)


def test_an_unknown_model_is_named_with_a_suggestion(toy_dir):
    text = (toy_dir / "toy.yaml").read_text().replace(".ToyModel", ".ToyModell")
    assert "did you mean ToyModel?" in error_of(toy_dir / "bad.yaml", text)


def test_an_unknown_class_is_named_with_its_key(toy_dir):
    text = (
        (toy_dir / "toy.yaml")
        .read_text()
        .replace("toy_components.ToyEnc", "toys.ToyEnc")
    )
    (toy_dir / "bad.yaml").write_text(text)
    with pytest.raises(ConfigError, match="^base_params/encoder: toys"):
        load_config(toy_dir / "bad.yaml").check("train")


def test_a_file_beside_the_config_can_be_imported(tmp_path):
    (tmp_path / "my_toy_plugin.py").write_text(
        "class Model:\n"
        "    get_required_params = get_optional_params = staticmethod(dict)\n"
    )
    (tmp_path / "config.py").write_text(
        "from my_toy_plugin import Model as base_model\nbase_params = {}\n"
    )
    assert load_config(tmp_path / "config.py").base_model.__name__ == "Model"

from __future__ import annotations

import logging
import os
import subprocess
import sys
import types
from pathlib import Path

import pytest

import oseq
from oseq.cli import main

REPOSITORY = Path(__file__).resolve().parents[2]

CONFIG = """
from oseq.config.params import Param


class DataLayer:
    get_required_params = get_optional_params = staticmethod(dict)


class Encoder:
    @staticmethod
    def get_required_params():
        return {"hidden_size": Param(int, "width")}

    get_optional_params = staticmethod(dict)


class base_model:
    @staticmethod
    def get_required_params():
        return {"encoder": Param(type, "class of the encoder")}

    @staticmethod
    def get_optional_params():
        return {"encoder_params": Param(dict, "its keys", {}, schema_of="encoder")}


def policy(global_step, learning_rate):
    return learning_rate


base_params = {
    "logdir": "run",
    "data_layer": DataLayer,
    "batch_size_per_gpu": 4,
    "max_steps": 10,
    "optimizer": "Adam",
    "lr_policy": policy,
    "lr_policy_params": {"learning_rate": 0.1},
    "encoder": Encoder,
    "encoder_params": {"hidden_size": 8},
}
"""


@pytest.fixture
def config_path(tmp_path):
    path = tmp_path / "config.py"
    path.write_text(CONFIG)
    return path


@pytest.fixture
def modes(monkeypatch):
    """Stands in for oseq.modes: notes what it is called with."""
    fake = types.SimpleNamespace(calls=[], result=0)

    def run(config, mode, options):
        fake.calls.append((config, mode, options))
        if isinstance(fake.result, BaseException):
            raise fake.result
        return fake.result

    fake.run = run
    monkeypatch.setattr(oseq, "modes", fake, raising=False)
    monkeypatch.setitem(sys.modules, "oseq.modes", fake)
    logger = logging.getLogger("oseq")
    handlers, level = list(logger.handlers), logger.level
    yield fake
    logger.handlers = handlers
    logger.setLevel(level)


def options_of(modes, config_path, *arguments):
    assert main([f"--config_file={config_path}", *arguments]) == 0
    return modes.calls[-1][2]


def test_config_mode_and_flags_are_handed_over(modes, config_path):
    options = options_of(
        modes,
        config_path,
        "--mode=infer",
        "--infer_output_file=-",
        "--infer_input_file=-",
        f"--checkpoint={config_path.parent}",
        "--enable_logs",
    )
    config, mode, _ = modes.calls[0]
    assert mode == "infer"
    assert config.params("infer")["encoder_params"]["hidden_size"] == 8
    assert (options.infer_input_file, options.infer_output_file) == ("-", "-")
    assert options.enable_logs
    assert options.checkpoint == str(config_path.parent)
    assert options.command_line.endswith("--enable_logs")


def test_scores_and_alignments_are_asked_for_by_flags(modes, config_path):
    options = options_of(
        modes, config_path, "--mode=score", "--score_target_file=-", "--checkpoint=."
    )
    assert (options.score_target_file, options.checkpoint) == ("-", ".")
    options = options_of(
        modes, config_path, "--mode=infer", "--alignment_file=a", "--attention_file=b"
    )
    assert (options.alignment_file, options.attention_file) == ("a", "b")
    options = options_of(modes, config_path, "--mode=infer", "--timestamps_file=-")
    assert options.timestamps_file == "-"


def test_a_single_step_can_be_profiled(modes, config_path):
    options = options_of(modes, config_path, "--profile_steps=100:100")
    assert options.profile_steps == (100, 100)


def test_a_benchmark_is_a_training(modes, config_path):
    options = options_of(
        modes,
        config_path,
        "--mode=train_eval",
        "--benchmark",
        "--bench_steps=7",
        "--bench_start=2",
    )
    assert modes.calls[0][1] == "train"
    assert (options.benchmark, options.bench_steps, options.bench_start) == (True, 7, 2)


def test_settings_of_the_config_reach_it(modes, config_path):
    options_of(
        modes,
        config_path,
        "--encoder_params/hidden_size=16",
        "--optimizer_params/beta_1",
        "0.8",
        "--use_xla_jit",
    )
    params = modes.calls[0][0].params("train")
    assert params["encoder_params"]["hidden_size"] == 16
    assert params["optimizer_params"]["beta_1"] == 0.8
    assert params["use_xla_jit"] is True


@pytest.mark.parametrize(
    ("arguments", "resume"),
    [
        ([], "never"),
        (["--continue_learning"], "must"),
        (["--no_dir_check"], "auto"),
        (["--continue_learning", "--no_dir_check"], "auto"),
        (["--resume=auto"], "auto"),
        (["--resume=must", "--continue_learning"], "must"),
    ],
)
def test_the_older_flags_are_forms_of_resume(modes, config_path, arguments, resume):
    assert options_of(modes, config_path, *arguments).resume == resume


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--resume=never", "--continue_learning"], "contradict each other"),
        (["--mode=trian"], "invalid choice: 'trian'"),
        (["--profile_steps=110:100"], "1 <= FIRST <= LAST, got 110 and 100"),
        (["--profile_steps=ten"], "expected FIRST:LAST"),
        (["--profile_steps=0:5"], "1 <= FIRST <= LAST, got 0 and 5"),
        (["--mode=eval", "--profile_steps=1:5"], "not read in --mode=eval"),
        (["--benchmark", "--profile_steps=1:5"], "not with --benchmark"),
        (["--bench_steps=0"], "0 is less than 1"),
        (
            ["--mode=infer", "--infer_input_file=nowhere.txt"],
            "nowhere.txt: no such file",
        ),
        (["--mode=eval", "--infer_input_file=-"], "not read in --mode=eval"),
        (["--mode=eval", "--checkpoint=nowhere"], "nowhere does not exist"),
        (["--checkpoint=."], "not read in --mode=train; see load_model"),
        (["--mode=eval", "--ensemble=.,nowhere"], "nowhere does not exist"),
        (["--mode=eval", "--ensemble=.,"], "expected PATH,PATH,..., got '.,'"),
        (["--ensemble=."], "not read in --mode=train; an ensemble is not trained"),
        (["--mode=infer", "--infer_output_file=."], ". is a directory"),
        (["--mode=infer", "--infer_output_file=no/where"], "no is no directory"),
        (["--mode=score", "--infer_output_file=."], "--infer_output_file: . is a"),
        (["--mode=infer", "--alignment_file=."], "--alignment_file: . is a directory"),
        (["--mode=infer", "--attention_file=no/a"], "--attention_file: no is no"),
        (
            ["--mode=infer", "--alignment_file=a", "--attention_file=a"],
            "--attention_file: a is --alignment_file as well",
        ),
        (
            ["--mode=infer", "--infer_output_file=-", "--alignment_file=-"],
            "--alignment_file: - is --infer_output_file as well",
        ),
        (["--mode=score", "--alignment_file=a"], "not read in --mode=score"),
        (["--mode=eval", "--timestamps_file=a"], "not read in --mode=eval"),
        (["--mode=infer", "--timestamps_file=no/a"], "--timestamps_file: no is no"),
        (
            ["--mode=infer", "--timestamps_file=a", "--attention_file=b"],
            "not together with --alignment_file or --attention_file",
        ),
        (["--mode=infer", "--score_target_file=-"], "not read in --mode=infer"),
        (["--mode=score", "--score_target_file=no.de"], "no.de: no such file"),
        (["--max_step=3"], "--max_step: unknown key; did you mean --max_steps?"),
        (
            ["--continue_lerning"],
            "--continue_lerning: unknown key; did you mean --continue_learning?",
        ),
        (["--bench=3"], "--bench: unknown key"),
        (["stray"], "stray: neither a flag nor the value of one"),
    ],
)
def test_a_users_mistake_is_exit_code_2(modes, config_path, capsys, arguments, message):
    assert main([f"--config_file={config_path}", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error
    assert modes.calls == []


def test_a_missing_config_file_is_exit_code_2(modes, capsys):
    assert main(["--config_file=nowhere.py"]) == 2
    assert "nowhere.py: no such file" in capsys.readouterr().err
    assert main([]) == 2
    assert "--config_file" in capsys.readouterr().err


def test_a_failure_is_exit_code_1_with_traceback(modes, config_path, capsys):
    modes.result = RuntimeError("broken")
    assert main([f"--config_file={config_path}"]) == 1
    error = capsys.readouterr().err
    assert "Traceback" in error
    assert "RuntimeError: broken" in error


def test_ctrl_c_is_exit_code_130(modes, config_path, capsys):
    modes.result = KeyboardInterrupt()
    assert main([f"--config_file={config_path}"]) == 130
    assert "Traceback" not in capsys.readouterr().err


def test_the_exit_code_of_the_run_is_passed_on(modes, config_path):
    modes.result = 1
    assert main([f"--config_file={config_path}"]) == 1


def test_news_are_plain_and_warnings_are_marked(modes, config_path, capsys):
    assert main([f"--config_file={config_path}"]) == 0
    logging.getLogger("oseq.data").info("10 lines")
    logging.getLogger("oseq.data").warning("2 blank")
    assert capsys.readouterr().err == "10 lines\nwarning: 2 blank\n"


def test_help_config_lists_the_keys(modes, config_path, capsys):
    assert main([f"--config_file={config_path}", "--help_config"]) == 0
    assert "  hidden_size: a whole number; required" in capsys.readouterr().out
    assert modes.calls == []


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith(f"oseq {oseq.__version__} (TensorFlow 2.")


def run_as_a_user(*arguments, **environment):
    inherited = {
        key: value for key, value in os.environ.items() if not key.startswith("TF_")
    }
    return subprocess.run(
        [sys.executable, str(REPOSITORY / "run.py"), *arguments],
        capture_output=True,
        text=True,
        env=inherited | environment,
        timeout=60,
    )


def test_in_a_process_a_wrong_config_prints_its_problems_and_nothing_else(config_path):
    config_path.write_text(CONFIG.replace('hidden_size": 8', 'hidden_sise": 8'))
    result = run_as_a_user(f"--config_file={config_path}", "--max_steps=0")
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr == (
        f"oseq: error: {config_path}:\n"
        "  --max_steps: must be at least 1, got 0\n"
        "  base_params/encoder_params/hidden_sise: unknown key; "
        "did you mean hidden_size?\n"
        "  base_params/encoder_params/hidden_size: missing; width\n"
    )


def test_in_a_process_a_mistake_in_flags_is_found_without_tensorflow(tmp_path):
    (tmp_path / "tensorflow.py").write_text("raise SystemExit('imported')")
    result = run_as_a_user("--config_file=nowhere.py", PYTHONPATH=str(tmp_path))
    assert result.returncode == 2
    assert result.stderr == "oseq: error: nowhere.py: no such file\n"


def test_in_a_process_what_stops_tensorflow_is_shown(tmp_path, config_path):
    for name in ("tensorflow", "keras"):
        (tmp_path / f"{name}.py").write_text(
            "import os\nos.write(2, b'no such instruction\\n')\n"
            "raise ImportError('libtensorflow')\n"
        )
    result = run_as_a_user(f"--config_file={config_path}", PYTHONPATH=str(tmp_path))
    assert result.returncode == 1
    assert result.stderr.startswith("no such instruction\n")
    assert "ImportError: libtensorflow" in result.stderr


@pytest.fixture
def launches(monkeypatch):
    """Stands in for launch_workers: notes what it is called with."""
    started = []

    def launch(command, num_workers):
        started.append((command, num_workers))
        return 137

    monkeypatch.setattr("oseq.cli.launch_workers", launch)
    return started


def launched_by_horovodrun(monkeypatch, size):
    monkeypatch.setenv("HOROVOD_RANK", "0")
    monkeypatch.setenv("HOROVOD_SIZE", str(size))


@pytest.mark.parametrize("gpus", ["--num_gpus=3", "--gpu_ids=[1,0,5]"])
@pytest.mark.parametrize(
    "mode",
    ["train", "train_eval", "eval", "infer", "score", "train --benchmark"],
)
def test_several_devices_have_a_process_each(
    modes, launches, monkeypatch, config_path, mode, gpus
):
    monkeypatch.setattr("tensorflow.config.list_physical_devices", lambda _: range(6))
    argv = [
        f"--config_file={config_path}",
        *f"--mode={mode}".split(),
        gpus,
        "--use_horovod=True",
        "--eval_steps=5",
    ]
    assert main(argv) == 137
    assert launches == [([sys.executable, "-m", "oseq", *argv], 3)]
    assert modes.calls == []


def test_workers_are_started_as_this_process_was(
    modes, launches, monkeypatch, config_path
):
    argv = [f"--config_file={config_path}", "--num_gpus=2"]
    for how in (["-X", "dev", "-m", "oseq"], ["run.py"]):
        monkeypatch.setattr("sys.argv", ["somewhere", *argv])
        monkeypatch.setattr("sys.orig_argv", ["python", *how, *argv])
        main()
        assert launches.pop() == ([sys.executable, *how, *argv], 2)


def test_more_workers_than_gpus_are_not_even_started(
    modes, launches, monkeypatch, config_path, capsys
):
    monkeypatch.setattr("tensorflow.config.list_physical_devices", lambda _: ["a", "b"])
    assert main([f"--config_file={config_path}", "--num_gpus=3"]) == 2
    assert launches == []
    assert "3 workers on this host, but 2 of its GPUs" in capsys.readouterr().err


@pytest.mark.parametrize(
    "flags",
    [
        ["--mode=interactive_infer"],
        ["--mode=average"],
        ["--mode=export", "--export_dir={new}"],
        ["--mode=infer", "--infer_input_file=-"],
        ["--mode=score", "--score_target_file=-"],
        ["--mode=infer", "--alignment_file=-"],
    ],
)
def test_what_one_process_must_do_is_done_by_one(
    modes, launches, monkeypatch, config_path, tmp_path, capsys, flags
):
    flags = [flag.format(new=tmp_path / "new") for flag in flags]

    options_of(modes, config_path, "--num_gpus=2", *flags)

    assert launches == []
    if flags[-1].endswith("=-"):
        assert "one process instead of 2" in capsys.readouterr().err
    modes.calls.clear()
    launched_by_horovodrun(monkeypatch, 2)
    assert main([f"--config_file={config_path}", *flags]) == 2
    assert modes.calls == []
    assert "start it without a launcher" in capsys.readouterr().err
    monkeypatch.setenv("HOROVOD_SIZE", "1")
    options_of(modes, config_path, *flags)


def test_a_worker_starts_no_workers(modes, launches, monkeypatch, config_path):
    launched_by_horovodrun(monkeypatch, 2)
    options_of(modes, config_path, "--num_gpus=2")
    assert launches == []


def test_one_device_needs_no_other_process(modes, launches, config_path):
    for gpus in ("--num_gpus=1", "--num_gpus=0", "--gpu_ids=[3]", "--num_gpus=None"):
        options_of(modes, config_path, gpus)
    assert launches == []

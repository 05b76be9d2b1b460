from __future__ import annotations

import logging
import re
import sys

import numpy as np
import pytest
import tensorflow as tf

from oseq.config.params import ConfigError
from oseq.contracts import Result
from oseq.optimizers.loss_scalers import BackoffScaler
from oseq.training import checkpoint as checkpoints
from oseq.training.checkpoint import CheckpointError
from oseq.training.evaluator import Evaluation, Evaluator
from oseq.training.hooks.benchmark import BenchmarkHook
from oseq.training.hooks.best_checkpoint import BestCheckpointHook
from oseq.training.hooks.checkpointing import CheckpointHook
from oseq.training.hooks.early_stopping import EarlyStoppingHook
from oseq.training.hooks.elastic import ElasticHook
from oseq.training.hooks.evaluation import EvaluationHook
from oseq.training.hooks.hook import Hook
from oseq.training.hooks.loss_scale import LossScaleHook, StuckLossScaleError
from oseq.training.hooks.profiler import ProfilerHook
from oseq.training.hooks.progress import ProgressHook
from oseq.training.hooks.samples import SampleHook
from oseq.training.hooks.tensorboard import TensorBoardHook
from tests.unit.training.fakes import TinyDataLayer, all_values, make_run


class ScriptedEvaluator:
    """Reports given values of one metric, one after the other."""

    def __init__(self, metric, values):
        self._metric, self._values = metric, iter(values)

    def evaluate(self):
        result = Result(0, "a", "b", ["c"], [0.0])
        return Evaluation({self._metric: next(self._values)}, [result])


def evaluated_run(logdir, metric, values, patience=99, last_step=8, **arguments):
    hooks = [
        EvaluationHook(ScriptedEvaluator(metric, values), 2),
        BestCheckpointHook(logdir, metric),
        EarlyStoppingHook(metric, patience),
        CheckpointHook(logdir, 1, 2),
    ]
    return make_run(last_step=last_step, hooks=hooks, **arguments)


@pytest.mark.parametrize(
    ("metric", "values", "step"),
    [("BLEU", [1.0, 3.0, 3.0, 2.0], 4), ("loss", [4.0, 3.0, 2.0, 2.5], 6)],
)
def test_the_best_checkpoint_is_kept(tmp_path, metric, values, step):
    evaluated_run(tmp_path, metric, values).trainer.run()
    assert checkpoints.best(tmp_path) == checkpoints.path_of(tmp_path / "best", step)
    assert len(list((tmp_path / "best").iterdir())) == 1
    note = {"name": metric, "value": values[step // 2 - 1], "step": step}
    assert checkpoints.read_header(checkpoints.best(tmp_path)).notes["best"] == note
    newest = checkpoints.read_header(checkpoints.latest(tmp_path))
    assert newest.step == 8
    assert newest.notes["best"] == note
    assert newest.notes["metrics"] == {metric: values[3]}
    assert newest.notes["metrics_step"] == 8


def test_the_best_survives_a_restart(tmp_path):
    evaluated_run(tmp_path, "BLEU", [1.0, 9.0], last_step=4).trainer.run()
    # The best lies in its own file, so a checkpoint of before will do.
    checkpoints.path_of(tmp_path / "checkpoints", 4).unlink()
    resumed = evaluated_run(tmp_path, "BLEU", [9.0, 8.0, 7.0])
    resumed.trainer.restore(checkpoints.latest(tmp_path))
    assert resumed.trainer.step == 3
    resumed.trainer.run()
    header = checkpoints.read_header(checkpoints.best(tmp_path))
    assert (header.step, header.notes["best"]["value"]) == (4, 9.0)


def test_a_new_run_owes_nothing_to_an_old_best(tmp_path):
    evaluated_run(tmp_path, "BLEU", [9.0], last_step=2).trainer.run()
    for path in (tmp_path / "checkpoints").iterdir():
        path.unlink()
    evaluated_run(tmp_path, "BLEU", [1.0, 2.0], last_step=4).trainer.run()
    assert checkpoints.read_header(checkpoints.best(tmp_path)).notes["best"] == {
        "name": "BLEU",
        "value": 2.0,
        "step": 4,
    }


def test_early_stopping_counts_evaluations_without_improvement(tmp_path):
    run = evaluated_run(tmp_path, "BLEU", [1.0, 2.0, 2.0, 1.5, 9.0], 2, last_step=20)
    run.trainer.run()
    assert run.trainer.step == 8
    assert "BLEU has not improved on 2 in 2 evaluations" in run.trainer.stop_reason


def test_early_stopping_goes_on_counting_after_a_restart(tmp_path):
    evaluated_run(tmp_path, "loss", [1.0, 1.1], 2, last_step=4).trainer.run()
    resumed = evaluated_run(tmp_path, "loss", [1.2, 0.1], 2, last_step=20)
    resumed.trainer.restore(checkpoints.latest(tmp_path))
    resumed.trainer.run()
    assert resumed.trainer.step == 6


def test_an_unknown_metric_is_refused_with_the_known_ones(tmp_path):
    hooks = [
        EvaluationHook(ScriptedEvaluator("BLEU", [1.0]), 1),
        EarlyStoppingHook("WER", 1),
    ]
    with pytest.raises(ConfigError, match="'WER'.*BLEU"):
        make_run(hooks=hooks).trainer.run()


def test_evaluation_at_the_end_only_if_the_last_step_had_none(tmp_path):
    with pytest.raises(StopIteration):  # a fifth evaluation, after step 9
        evaluated_run(tmp_path, "BLEU", [1.0] * 4, last_step=9).trainer.run()


def test_a_complete_run_is_neither_judged_nor_saved_again(tmp_path, caplog):
    evaluated_run(tmp_path, "BLEU", [1.0] * 4).trainer.run()
    path = checkpoints.latest(tmp_path)
    written = path.stat().st_mtime_ns
    resumed = evaluated_run(tmp_path, "BLEU", [])
    resumed.trainer.restore(path)
    with caplog.at_level(logging.INFO):
        resumed.trainer.run()
    assert "already complete: step 8 of 8" in caplog.messages
    assert not any(message.startswith("saved") for message in caplog.messages)
    assert path.stat().st_mtime_ns == written


def test_a_complete_run_that_was_never_judged_is_judged(tmp_path):
    hooks = [CheckpointHook(tmp_path, None, 1)]
    make_run(last_step=3, hooks=hooks).trainer.run()
    resumed = evaluated_run(tmp_path, "BLEU", [7.0], last_step=3)
    resumed.trainer.restore(checkpoints.latest(tmp_path))
    resumed.trainer.run()
    best = checkpoints.read_header(checkpoints.best(tmp_path))
    assert best.notes["best"]["value"] == 7.0


def test_a_signal_skips_the_evaluation_at_the_end(tmp_path):
    run = evaluated_run(tmp_path, "BLEU", [], last_step=1)
    run.trainer.is_interrupted = True
    run.trainer.run()
    assert checkpoints.read_header(checkpoints.latest(tmp_path)).step == 1


def test_evaluation_judges_the_moving_average():
    run = make_run(last_step=2, ema_decay=0.99)

    class Judge:
        def evaluate(self):
            self.kernel = run.model.dense.kernel.numpy()
            return Evaluation({"loss": 1.0}, [])

    judge = Judge()
    run.trainer._hooks.append(EvaluationHook(judge, 2))
    run.trainer.run()
    average = run.average.averages["tiny/dense/kernel"].numpy()
    np.testing.assert_array_equal(judge.kernel, average)
    assert not np.array_equal(judge.kernel, run.model.dense.kernel.numpy())


def test_only_the_last_checkpoints_are_kept(tmp_path):
    make_run(last_step=7, hooks=[CheckpointHook(tmp_path, 2, 2)]).trainer.run()
    names = [path.name for path in sorted((tmp_path / "checkpoints").iterdir())]
    assert names == ["step-0000006.safetensors", "step-0000007.safetensors"]


def test_a_damaged_newer_checkpoint_does_not_push_out_good_ones(tmp_path, caplog):
    make_run(last_step=4, hooks=[CheckpointHook(tmp_path, 2, 2)]).trainer.run()
    damaged = checkpoints.path_of(tmp_path / "checkpoints", 4)
    damaged.write_bytes(damaged.read_bytes()[:-9])
    resumed = make_run(last_step=3, hooks=[CheckpointHook(tmp_path, None, 1)])
    resumed.trainer.restore(checkpoints.latest(tmp_path))
    resumed.trainer.run()
    assert checkpoints.read_header(checkpoints.latest(tmp_path)).step == 3
    assert f"{damaged}" in caplog.text


def test_a_new_run_does_not_mix_with_checkpoints_of_another(tmp_path):
    make_run(last_step=4, hooks=[CheckpointHook(tmp_path, None, 2)]).trainer.run()
    with pytest.raises(CheckpointError, match="further than this run"):
        make_run(last_step=2, hooks=[CheckpointHook(tmp_path, 1, 2)]).trainer.run()
    assert checkpoints.read_header(checkpoints.latest(tmp_path)).step == 4


@pytest.mark.parametrize("every_steps", [3, 100])
def test_a_stuck_loss_scale_ends_the_run_and_names_step_and_tensors(every_steps):
    run = make_run(
        last_step=500,
        hooks=[LossScaleHook(every_steps)],
        overflow_at=range(3, 1000),
        scaler=BackoffScaler(scale_min=1.0, scale_max=2.0),
    )
    with pytest.raises(StuckLossScaleError) as error:
        run.trainer.run()
    assert "step 3 overflows at the lowest loss scale (1)" in str(error.value)
    assert "tiny/dense/kernel" in str(error.value)
    assert "tiny/embedding" not in str(error.value)


def test_a_few_overflows_do_not_end_the_run():
    run = make_run(
        last_step=6,
        hooks=[LossScaleHook(1)],
        overflow_at={2, 3},
        scaler=BackoffScaler(scale_min=1.0, scale_max=64.0),
    )
    run.trainer.run()
    assert run.trainer.step == 6


def test_progress_is_plain_lines_where_there_is_no_terminal(caplog):
    run = make_run(
        last_step=4, hooks=[ProgressHook(2)], overflow_at={3}, scaler=BackoffScaler()
    )
    with caplog.at_level(logging.INFO):
        run.trainer.run()
    lines = [r.getMessage() for r in caplog.records if r.name.endswith("progress")]
    assert len(lines) == 2
    pattern = (
        r"step 2/4: loss \d+\.\d{4}, lr 0\.05, tokens/s [\d,]+, steps/s [\d.]+, "
        r"remaining \d+:\d\d:\d\d"
    )
    assert re.fullmatch(pattern, lines[0])
    assert "skipped 1" in lines[1]


def test_targets_that_a_loss_leaves_out_are_told_once_and_drawn(tmp_path, caplog):
    hooks = [ProgressHook(2), TensorBoardHook(tmp_path, 2)]
    run = make_run(last_step=6, hooks=hooks)
    run.step.num_impossible = 3.0
    run.trainer.run()
    messages = [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]
    (message,) = [each for each in messages if "too many symbols" in each]
    assert message.startswith("6 transcripts so far")
    assert tags_of(tmp_path)["train/impossible_targets"] == 6


def test_progress_is_a_bar_in_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    make_run(last_step=5, hooks=[ProgressHook(2)]).trainer.run()
    shown = capsys.readouterr().err
    assert "5/5" in shown
    assert "tokens/s" in shown
    assert "loss=" in shown


def test_a_line_of_the_log_stands_once_above_the_bar(monkeypatch, capsys):
    class Talk(Hook):
        def begin(self, trainer):
            logging.getLogger("oseq.talk").warning("hello")

    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    ours = logging.getLogger("oseq")
    # As the command line sets it up.
    monkeypatch.setattr(ours, "handlers", [logging.StreamHandler(sys.stderr)])
    make_run(last_step=1, hooks=[ProgressHook(1), Talk()]).trainer.run()
    assert capsys.readouterr().err.count("hello") == 1


def test_samples_show_source_reference_and_hypothesis(caplog):
    run = make_run(last_step=2)
    evaluator = Evaluator(run.model, TinyDataLayer("eval"), run.trainer.worker)
    run.trainer._hooks.append(SampleHook(evaluator, 2, num_examples=1))
    with caplog.at_level(logging.INFO):
        run.trainer.run()
    (message,) = [r.getMessage() for r in caplog.records if "hypothesis" in r.msg]
    texts = dict(re.findall(r"(source|reference|hypothesis): +(.*)", message))
    assert texts["source"] == texts["reference"] == texts["hypothesis"] != ""


def test_the_benchmark_leaves_out_the_first_steps(caplog):
    run = make_run(last_step=9, hooks=[BenchmarkHook(start=3, every_steps=4)])
    with caplog.at_level(logging.INFO):
        run.trainer.run()
    lines = [r.getMessage() for r in caplog.records if "benchmark" in r.msg]
    assert [re.search(r"steps \d+ to \d+", line)[0] for line in lines] == [
        "steps 4 to 4",
        "steps 4 to 8",
        "steps 4 to 9",
    ]


def test_a_benchmark_from_step_0_times_the_first_update_too(caplog):
    run = make_run(last_step=2, hooks=[BenchmarkHook(start=0)])
    with caplog.at_level(logging.INFO):
        run.trainer.run()
    (line,) = [r.getMessage() for r in caplog.records if "benchmark" in r.msg]
    assert "steps 1 to 2" in line


def test_the_profiler_records_its_steps(tmp_path):
    run = make_run(last_step=4, hooks=[ProfilerHook(tmp_path, 2, 3)])
    run.trainer.run()
    assert list((tmp_path / "profile").rglob("*.xplane.pb"))
    with pytest.raises(ValueError, match="3:2"):
        ProfilerHook(tmp_path, 3, 2)


def tags_of(folder):
    """Returns the last step of each tag in a run's event files."""
    return {
        value.tag: event.step
        for file in (folder / "tensorboard").iterdir()
        for event in tf.compat.v1.train.summary_iterator(str(file))
        for value in event.summary.value
    }


def test_tensorboard_shows_curves_texts_and_attention(tmp_path):
    run = make_run(last_step=4)
    data_layer = TinyDataLayer("eval")
    evaluator = Evaluator(run.model, data_layer, run.trainer.worker)
    summaries = ["learning_rate", "variable_norm"]
    run.trainer._hooks += [
        EvaluationHook(evaluator, None),
        TensorBoardHook(tmp_path, 2, summaries, data_layer),
    ]
    run.trainer.run()
    found = tags_of(tmp_path)
    assert found.keys() == {
        "train/loss",
        "train/padding_share",
        "train/learning_rate",
        "speed/target_tokens_per_second",
        "speed/steps_per_second",
        "variable_norm/tiny/embedding/embeddings",
        "variable_norm/tiny/dense/kernel",
        "variable_norm/tiny/dense/bias",
        "eval/loss",
        "eval/perplexity",
        "eval/exact",
        "eval/samples",
        "eval/attention",
    }
    assert set(found.values()) == {4}


class SpeechDataLayer(TinyDataLayer):
    """Features that are the ids themselves, a tenth of a second each."""

    seconds_per_position = 0.1

    def surfaces(self, ids):
        return [str(value) for value in ids]

    def dataset(self, *position):
        def with_features(batch):
            ids = tf.cast(batch["source"]["ids"], tf.float32)
            features = tf.repeat(ids[..., tf.newaxis], 3, axis=2)
            return {**batch, "source": {**batch["source"], "features": features}}

        return super().dataset(*position).map(with_features)


def test_speech_is_drawn_and_its_speed_reported(tmp_path, caplog):
    run = make_run(last_step=2, data_layer=SpeechDataLayer())
    data_layer = SpeechDataLayer("eval")
    call = run.model.call

    def with_frames(batch, training=False):
        length = batch["source"]["length"]
        return {**call(batch, training=training), "length": length}

    run.model.call = with_frames
    evaluator = Evaluator(run.model, data_layer, run.trainer.worker)
    run.trainer._hooks += [
        ProgressHook(1),
        EvaluationHook(evaluator, None),
        TensorBoardHook(tmp_path, 1, ["learning_rate"], data_layer),
    ]

    with caplog.at_level(logging.INFO):
        run.trainer.run()

    found = tags_of(tmp_path)
    assert {"eval/speech", "eval/attention"} <= found.keys()
    assert "speed/speech_seconds_per_second" in found
    lines = [r.getMessage() for r in caplog.records if "speech s/s" in r.getMessage()]
    assert len(lines) == 2


def test_summaries_that_do_not_exist_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="'gradients', 'larc'"):
        TensorBoardHook(tmp_path, 2, ["learning_rate", "gradients", "larc"])


class Commits:
    """Keeps every snapshot that it is given."""

    def __init__(self):
        self.snapshots = []

    def commit(self, snapshot):
        self.snapshots.append(snapshot)


def test_a_run_goes_on_from_any_of_its_commits_as_if_nothing_had_happened():
    commits = Commits()
    whole = make_run(last_step=8, hooks=[ElasticHook(commits, 3)])
    whole.trainer.run()
    assert [each.header.step for each in commits.snapshots] == [0, 3, 6]

    later = Commits()
    again = make_run(last_step=8, hooks=[ElasticHook(later, 3)])
    again.trainer.restore(commits.snapshots[1])
    again.trainer.run()

    assert [each.header.step for each in later.snapshots] == [3, 6]
    assert again.step.seen == whole.step.seen[3:]
    for name, value in all_values(whole).items():
        np.testing.assert_array_equal(all_values(again)[name], value, name)

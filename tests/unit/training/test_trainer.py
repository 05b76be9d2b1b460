from __future__ import annotations

import logging
import os
import signal
import threading

import numpy as np
import pytest
import tensorflow as tf

from oseq.contracts import DataSpec, Position
from oseq.distributed.worker import SingleWorker
from oseq.training import checkpoint as checkpoints
from oseq.training.checkpoint import CheckpointError
from oseq.training.evaluator import Evaluation
from oseq.training.hooks.checkpointing import CheckpointHook
from oseq.training.hooks.evaluation import EvaluationHook
from oseq.training.hooks.hook import Hook
from tests.unit.training.fakes import (
    TinyDataLayer,
    all_values,
    backoff,
    make_run,
    on_workers,
    saved_run,
)


class Recorder(Hook):
    """Notes the steps at which it is called, and the optimizer's count there."""

    def __init__(self, every_steps, chief_only=True):
        self.every_steps = every_steps
        self.chief_only = chief_only
        self.events = []
        self.skipped = 0

    def begin(self, trainer):
        self.events.append(("begin", trainer.step))

    def after_step(self, trainer, result):
        assert trainer.step == int(trainer.optimizer.iterations.numpy())
        self.events.append(trainer.step)

    def after_skips(self, trainer, num_skipped):
        self.skipped += num_skipped

    def end(self, trainer):
        self.events.append(("end", trainer.step))


@pytest.fixture(autouse=True)
def signals_as_in_a_terminal():
    """Undoes what the shell or CI that runs the tests may have set to be ignored."""
    handlers = {
        signal.SIGINT: signal.default_int_handler,
        signal.SIGTERM: signal.SIG_DFL,
    }
    previous = {number: signal.signal(number, handlers[number]) for number in handlers}
    yield
    for number, handler in previous.items():
        signal.signal(number, handler)


def assert_same(actual, expected):
    assert actual.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(actual[name], value, err_msg=name)


@pytest.mark.parametrize(
    ("policy", "num_steps"), [("float32", 1), ("float32", 8), ("bfloat16", 5)]
)
def test_train_n_and_resume_is_train_on(tmp_path, policy, num_steps):
    options = {"policy": policy, "ema_decay": 0.9, "batch_norm": True}
    whole = make_run(last_step=11, **options)
    whole.trainer.run()
    first = make_run(
        last_step=num_steps, hooks=[CheckpointHook(tmp_path, None, 1)], **options
    )
    first.trainer.run()
    second = make_run(last_step=11, **options)
    second.trainer.restore(checkpoints.latest(tmp_path))
    assert second.trainer.step == num_steps
    second.trainer.run()
    assert first.step.seen + second.step.seen == whole.step.seen
    assert first.step.losses + second.step.losses == whole.step.losses
    assert_same(all_values(second), all_values(whole))


def test_a_run_cut_off_between_writing_and_renaming_resumes_from_before(
    tmp_path, monkeypatch
):
    whole = make_run(last_step=9)
    whole.trainer.run()
    replace = os.replace

    def die_at_step_6(source, target):
        if "step-0000006" in str(target):
            raise KeyboardInterrupt
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", die_at_step_6)
        run = make_run(last_step=9, hooks=[CheckpointHook(tmp_path, 3, 2)])
        with pytest.raises(KeyboardInterrupt):
            run.trainer.run()
    resumed = make_run(last_step=9, hooks=[CheckpointHook(tmp_path, 3, 2)])
    resumed.trainer.restore(checkpoints.latest(tmp_path))
    assert resumed.trainer.step == 3
    resumed.trainer.run()
    assert_same(all_values(resumed), all_values(whole))
    names = [path.name for path in sorted((tmp_path / "checkpoints").iterdir())]
    assert names == ["step-0000006.safetensors", "step-0000009.safetensors"]


def test_hooks_run_at_exactly_their_steps():
    hook, never = Recorder(3), Recorder(None)
    run = make_run(last_step=7, hooks=[hook, never])
    run.trainer.run()
    assert hook.events == [("begin", 0), 3, 6, ("end", 7)]
    assert never.events == [("begin", 0), ("end", 7)]
    assert len(run.step.seen) == 7


@pytest.mark.parametrize("overflow_at", [{1}, {3}, {3, 4, 5}, {2, 7, 8}, {6, 9}])
def test_skipped_updates_are_no_steps(overflow_at):
    hooks = [Recorder(3), Recorder(2), Recorder(1)]
    run = make_run(last_step=6, hooks=hooks, overflow_at=overflow_at, scaler=backoff())
    run.trainer.run()
    assert hooks[0].events == [("begin", 0), 3, 6, ("end", 6)]
    assert hooks[1].events == [("begin", 0), 2, 4, 6, ("end", 6)]
    assert hooks[2].events[1:-1] == [1, 2, 3, 4, 5, 6]
    assert int(run.optimizer.iterations.numpy()) == 6
    happened = sum(call <= len(run.step.seen) for call in overflow_at)
    assert len(run.step.seen) == 6 + happened
    assert hooks[0].skipped == happened
    assert run.trainer.position == Position(*divmod(6 + happened, 4))


def test_nothing_is_read_from_the_device_between_hooks(monkeypatch):
    looks = []
    run = make_run(last_step=8, hooks=[Recorder(4)])
    look = run.trainer._look
    monkeypatch.setattr(
        run.trainer, "_look", lambda now: (looks.append(run.trainer.step), look(now))
    )
    run.trainer.run()
    assert looks == [4, 8, 8]  # two for the hook, one at the end


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_finishes_the_step_saves_and_leaves(tmp_path, number):
    def kill(call):
        if call == 3:
            os.kill(os.getpid(), number)

    handler = signal.getsignal(number)
    run = make_run(hooks=[CheckpointHook(tmp_path, None, 1)], before=kill)
    run.trainer.run()
    assert run.trainer.step == 3
    assert run.trainer.is_interrupted
    assert number.name in run.trainer.stop_reason
    assert checkpoints.read_header(checkpoints.latest(tmp_path)).step == 3
    assert signal.getsignal(number) == handler


def test_an_ignored_signal_stays_ignored(tmp_path):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    run = make_run(
        hooks=[CheckpointHook(tmp_path, None, 1)],
        before=lambda call: os.kill(os.getpid(), signal.SIGINT),
    )
    run.trainer.run()
    assert not run.trainer.is_interrupted


def test_a_second_signal_ends_at_once(tmp_path):
    def kill_twice(call):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    run = make_run(hooks=[CheckpointHook(tmp_path, None, 1)], before=kill_twice)
    with pytest.raises(KeyboardInterrupt):
        run.trainer.run()
    assert checkpoints.latest(tmp_path) is None


def test_stop_ends_the_run_with_its_reason(caplog):
    class Stopper(Recorder):
        def after_step(self, trainer, result):
            trainer.stop("enough")

    run = make_run(hooks=[Stopper(2)])
    with caplog.at_level(logging.INFO):
        run.trainer.run()
    assert run.trainer.step == 2
    assert not run.trainer.is_interrupted
    assert "stopping at step 2: enough" in caplog.text


def test_another_number_of_examples_begins_the_epoch_anew(tmp_path, caplog):
    _, path = saved_run(tmp_path, last_step=6)
    resumed = make_run(last_step=8, data_layer=TinyDataLayer(num_examples=11))
    resumed.trainer.restore(path)
    assert resumed.trainer.position == Position(1, 0)
    assert "num_examples was 7, is 11" in caplog.text
    resumed.trainer.run()
    assert resumed.trainer.step == 8


def test_other_workers_go_on_after_the_same_share_of_the_epoch(tmp_path, caplog):
    _, path = saved_run(tmp_path, last_step=6)  # 2 of 4 batches of the second epoch
    resumed = make_run(worker=TwoWorkers(lambda value: value))
    resumed.trainer.restore(path)
    assert resumed.trainer.step == 6
    assert resumed.trainer.position == Position(1, 1)  # of 2
    (line,) = [text for text in caplog.messages if "same share" in text]
    assert "workers was 1, is 2" in line


def test_skipped_updates_are_counted_over_restarts(tmp_path):
    def run_of(last_step):
        return make_run(last_step=last_step, scaler=backoff(), overflow_at={2, 3})

    first = run_of(3)
    first.trainer.run()
    path = first.trainer.save(tmp_path)
    assert checkpoints.read_header(path).num_skipped == 2
    second = run_of(6)
    second.trainer.restore(path)
    second.trainer.run()
    path = second.trainer.save(tmp_path)
    assert checkpoints.read_header(path).num_skipped == 4


def test_another_vocabulary_is_refused_with_both_sizes(tmp_path):
    _, path = saved_run(tmp_path)
    spec = DataSpec(source_vocab_size=8, target_vocab_size=12)
    run = make_run(data_layer=TinyDataLayer(spec=spec))
    with pytest.raises(CheckpointError, match="target vocabulary has 8 .* data 12"):
        run.trainer.restore(path)


class TwoWorkers(SingleWorker):
    """The chief of two workers, the other of which answers with ``other(value)``."""

    size = 2

    def __init__(self, other):
        self._other = other

    def gather_objects(self, value):
        return [value, self._other(value)]


def test_random_states_of_all_workers_are_saved_and_each_takes_its_own(tmp_path):
    chief = TwoWorkers(
        lambda value: [states + 10 for states in value] if type(value) is list else None
    )
    run = make_run(last_step=2, worker=chief)
    path = run.trainer.save(tmp_path)
    saved = checkpoints.read(path)
    assert set(saved.under("random")) == {"0/0000", "1/0000"}
    second = SecondWorker((saved.header, random_of(saved)))
    on_second_worker = make_run(worker=second)
    on_second_worker.trainer.restore(path)
    np.testing.assert_array_equal(
        on_second_worker.model.dropout.seed_generator.state.numpy(),
        saved.tensors["random/1/0000"],
    )


def random_of(saved):
    return {name: value for name, value in saved.tensors.items() if "random/" in name}


class SecondWorker(SingleWorker):
    """The second of two workers, whose chief found ``found``."""

    rank, size = 1, 2

    def __init__(self, found):
        self._found = found

    def gather_objects(self, value):
        return [(self._found, None), value]


def test_only_the_chief_reads_a_checkpoint(tmp_path):
    _, path = saved_run(tmp_path)
    saved = checkpoints.read(path)
    path.unlink()
    second = make_run(worker=SecondWorker((saved.header, random_of(saved))))
    second.trainer.restore(path)
    assert second.trainer.step == saved.header.step
    assert second.trainer.position == saved.header.position


@pytest.mark.parametrize("drift", [0, 1])
def test_workers_that_drifted_apart_take_the_weights_of_the_chief(
    tmp_path, caplog, drift
):
    class Twin(TwoWorkers):
        num_broadcast = 0

        def broadcast(self, variables):
            self.num_broadcast += len(variables)

    def other(value):
        is_checksums = type(value) is list and type(value[0]) is int
        return [value[0] + drift, *value[1:]] if is_checksums else value

    worker = Twin(other)
    run = make_run(worker=worker)
    run.trainer.save(tmp_path)
    assert bool(worker.num_broadcast) == bool(drift)
    assert ("1 of" in caplog.text) == bool(drift)


def test_what_workers_followed_is_averaged_before_it_is_judged_and_saved(
    tmp_path, caplog
):
    building = threading.Lock()  # seeds are the process's

    def judge_and_save(worker):
        with building:
            run = make_run(worker=worker, batch_norm=True, ema_decay=0.9)
        mean = run.model.norm.moving_mean
        mean.assign([float(worker.rank)] * 4)
        run.average.averages[mean.path].assign([10.0 + worker.rank] * 4)
        judged = []

        class Judge:
            def evaluate(self):
                judged.append(mean.numpy().tolist())
                return Evaluation({"loss": 1.0}, [])

        EvaluationHook(Judge(), 1).after_step(run.trainer, None)
        path = run.trainer.save(tmp_path)
        return judged, mean.numpy().tolist(), path

    chief, other = on_workers(2, judge_and_save)

    assert chief == other
    judged, mean, path = chief
    assert (judged, mean) == ([[10.5] * 4], [0.5] * 4)
    saved = checkpoints.read(path).tensors
    assert saved["weights/tiny/norm/moving_mean"].tolist() == mean
    assert [saved["ema/tiny/norm/moving_mean"].tolist()] == judged
    assert "differ between workers" not in caplog.text


def test_a_checkpoint_whose_average_has_no_statistics_goes_on_from_the_last(tmp_path):
    _, path = saved_run(tmp_path, batch_norm=True, ema_decay=0.9)
    saved = checkpoints.read(path)
    last = saved.tensors["weights/tiny/norm/moving_mean"]
    del saved.tensors["ema/tiny/norm/moving_mean"]
    run = make_run(batch_norm=True, ema_decay=0.9)

    run.trainer.restore(saved)

    average = run.average.averages["tiny/norm/moving_mean"]
    np.testing.assert_array_equal(average, last)


def test_chief_only_hooks_run_on_the_chief_alone():
    worker = TwoWorkers(lambda value: value)
    worker.rank = 1
    chief_only, everywhere = Recorder(1), Recorder(1, chief_only=False)
    run = make_run(last_step=2, hooks=[chief_only, everywhere], worker=worker)
    run.trainer.run()
    assert chief_only.events == []
    assert everywhere.events == [("begin", 0), 1, 2, ("end", 2)]


def test_a_signal_for_another_worker_stops_this_one_too():
    run = make_run(last_step=100, worker=TwoWorkers(lambda value: value))
    run.step.num_stopping = 1.0
    run.trainer.run()
    assert run.trainer.is_interrupted
    assert run.trainer.step == 1


def test_a_signal_is_told_to_the_other_workers():
    def interrupt(call):
        if call == 4:
            signal.raise_signal(signal.SIGTERM)

    run = make_run(
        last_step=100, worker=TwoWorkers(lambda value: value), before=interrupt
    )
    run.trainer.run()
    assert run.trainer.is_interrupted
    assert run.trainer.step == 5  # the fourth is under way, the fifth tells
    assert "SIGTERM" in run.trainer.stop_reason


def test_totals_are_sums_over_all_updates():
    seen = []

    class Reader(Recorder):
        def after_step(self, trainer, result):
            seen.append(trainer.totals)

    run = make_run(last_step=4, hooks=[Reader(2)])
    run.trainer.run()
    since = seen[1] - seen[0]
    assert since.updates == 2
    assert since.num_tokens == since.source_tokens == since.weight > 0
    assert 0.0 <= since.padding_share < 1.0
    assert since.seconds > 0.0
    np.testing.assert_allclose(
        seen[1].num_tokens, sum(i % 3 + 1 for batch in run.step.seen for i in batch)
    )
    low, high = sorted(run.step.losses[2:])
    assert low - 1e-6 <= since.mean_loss <= high + 1e-6


def test_the_average_follows_what_batch_norm_has_followed():
    run = make_run(last_step=3, batch_norm=True, ema_decay=0.5)
    mean = run.model.norm.moving_mean
    average, expected = run.average.averages[mean.path], mean.numpy()

    for step in range(3):
        mean.assign_add([1.0, 2.0, 3.0, 4.0])
        run.optimizer.iterations.assign(step + 1)
        run.average.update(tf.constant(True))
        decay = min(0.5, (2 + step) / (11 + step))
        expected = decay * expected + (1 - decay) * mean.numpy()

    np.testing.assert_allclose(average, expected, rtol=1e-6)
    own = mean.numpy()
    with run.average.used_by(run.model):
        np.testing.assert_array_equal(mean.numpy(), average.numpy())
    np.testing.assert_array_equal(mean.numpy(), own)


def test_the_average_follows_the_masters_but_not_skipped_updates():
    run = make_run(
        overflow_at={2},
        last_step=2,
        scaler=backoff(),
        ema_decay=0.9,
    )
    path = "tiny/dense/kernel"
    master = run.optimizer.masters[path]
    trace, expected = [], master.numpy()
    step = run.trainer._train_step
    masters = []

    def spy(iterator):
        result = step(iterator)
        masters.append(master.numpy())
        trace.append(run.average.averages[path].numpy())
        return result

    spy.iter_size = 1
    run.trainer._train_step = spy
    run.trainer.run()
    decay = 2 / 11
    expected = decay * expected + (1 - decay) * masters[0]
    np.testing.assert_allclose(trace[1], expected, rtol=1e-6)
    np.testing.assert_array_equal(trace[2], trace[1])  # the skipped second call
    decay = 3 / 12
    expected = decay * expected + (1 - decay) * masters[2]
    np.testing.assert_allclose(run.average.averages[path].numpy(), expected, rtol=1e-6)
    own = run.model.dense.kernel.numpy()
    with run.average.used_by(run.model):
        np.testing.assert_allclose(run.model.dense.kernel.numpy(), expected, rtol=1e-6)
    np.testing.assert_array_equal(run.model.dense.kernel.numpy(), own)
    assert isinstance(run.average.averages[path], tf.Variable)

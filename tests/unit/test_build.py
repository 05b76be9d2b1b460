"""Which worker a process is; what of data and model does not fit together."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from oseq import build
from oseq.config.params import ConfigError
from oseq.distributed.worker import SingleWorker


class OneOfHorovod(SingleWorker):
    pass


class FakeConfig:
    def __init__(self, use_horovod):
        self._params = {"use_horovod": use_horovod, "num_gpus": 0, "gpu_ids": None}

    def params(self, mode):
        return self._params


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    for name in ("HOROVOD_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(build, "HorovodWorker", OneOfHorovod)


@pytest.mark.parametrize(
    ("use_horovod", "mode", "kind"),
    [
        (False, "train", SingleWorker),
        (True, "train_eval", OneOfHorovod),
        (True, "infer", SingleWorker),  # a trained model needs no Horovod
    ],
)
def test_without_a_launcher_only_training_that_asks_for_it_needs_horovod(
    use_horovod, mode, kind
):
    assert type(build.build_worker(FakeConfig(use_horovod), mode)) is kind


def test_workers_that_do_not_see_each_other_are_refused(monkeypatch):
    """As four chiefs they would write into one log directory."""
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "2")
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "4")
    with pytest.raises(ConfigError, match="4 processes, but Horovod sees 1"):
        build.build_worker(FakeConfig(False), "eval")


def check_subsampling(given, scores, subsampling=2):
    build._check_subsampling(
        SimpleNamespace(subsampling=given),
        SimpleNamespace(
            decoder=SimpleNamespace(scores=scores),
            encoder=SimpleNamespace(subsampling=subsampling),
        ),
    )


def test_data_counts_with_the_outputs_that_ctc_aligns():
    for scores in ({"frames"}, {"tokens", "frames"}):
        check_subsampling(2, scores)
        check_subsampling(None, scores)  # data need not count with them
        with pytest.raises(ConfigError, match=r"subsampling: 1, but .* is made of 2"):
            check_subsampling(1, scores)


def test_a_decoder_that_only_attends_aligns_nothing():
    check_subsampling(None, {"tokens"})
    with pytest.raises(ConfigError, match="subsampling: 2, but nothing aligns"):
        check_subsampling(2, {"tokens"})

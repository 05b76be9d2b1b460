from __future__ import annotations

import pytest

from oseq.distributed.chief_first import on_chief, once_per_host
from oseq.distributed.failures import OtherWorkerError
from oseq.distributed.worker import SingleWorker


class LaterWorker(SingleWorker):
    """The second of two, whose peers say what they are told to."""

    rank = local_rank = 1
    size = 2

    def __init__(self, value_of_chief):
        self.value_of_chief = value_of_chief

    def gather_objects(self, value):
        return [self.value_of_chief, value]


def test_all_get_what_the_chief_found():
    assert on_chief(SingleWorker(), lambda: 5) == 5
    assert on_chief(LaterWorker((5, None)), lambda: 1 / 0) == 5


def test_a_failure_of_the_chief_is_raised_on_all():
    with pytest.raises(OtherWorkerError, match="disk full"):
        on_chief(LaterWorker((None, "disk full")), lambda: 5)
    with pytest.raises(ZeroDivisionError):
        on_chief(SingleWorker(), lambda: 1 / 0)


def test_the_others_of_a_host_act_after_the_first():
    order = []

    class Second(LaterWorker):
        def gather_objects(self, value):
            order.append("first is done")
            return super().gather_objects(value)

    assert once_per_host(Second(None), lambda: order.append("second")) is None
    assert order == ["first is done", "second"]
    calls = []
    once_per_host(SingleWorker(), lambda: calls.append(1))
    assert calls == [1]


def test_a_failure_of_the_first_keeps_the_others_from_trying():
    with pytest.raises(OtherWorkerError, match="no such file"):
        once_per_host(LaterWorker("no such file"), lambda: 1 / 0)


def test_the_first_of_a_host_raises_its_own_error():
    class First(LaterWorker):
        rank, local_rank = 1, 0

    with pytest.raises(ZeroDivisionError):
        once_per_host(First(None), lambda: 1 / 0)
    with pytest.raises(OtherWorkerError, match="other host"):
        once_per_host(First("other host"), lambda: 5)

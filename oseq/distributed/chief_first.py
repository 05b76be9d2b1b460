"""Work that one worker does for all, so that not every worker does it at once.

Every worker must call these at the same place. An error of the one is raised there
as it is, and on the others as an ``OtherWorkerError`` that tells of it, so that none
waits for a worker that has ended.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar

from oseq.distributed.failures import OtherWorkerError
from oseq.distributed.worker import Worker

T = TypeVar("T")


def on_chief(worker: Worker, action: Callable[[], T]) -> T:
    """Returns on all workers what ``action`` returns on the chief."""
    outcome = _try(action) if worker.is_chief else _NOTHING
    result, problem = worker.gather_objects(outcome.to_be_sent())[0]
    if worker.is_chief:
        return outcome.result()
    if problem is not None:
        raise OtherWorkerError(f"the first worker has failed: {problem}")
    return result


def once_per_host(worker: Worker, action: Callable[[], T]) -> T:
    """Runs ``action`` on the first worker of each host, then on the others.

    The first leaves files behind (a cache) that the others then find.
    """
    is_first = worker.local_rank == 0
    outcome = _try(action) if is_first else _NOTHING
    problems = worker.gather_objects(outcome.problem)
    if outcome.error is None and any(problems):
        first = next(filter(None, problems))
        raise OtherWorkerError(f"the first worker of a host has failed: {first}")
    return outcome.result() if is_first else action()


@dataclasses.dataclass(frozen=True)
class _Outcome:
    """What an action returned, or the error that it raised."""

    value: Any = None
    error: Exception | None = None

    @property
    def problem(self) -> str | None:
        if self.error is None:
            return None
        return str(self.error) or type(self.error).__name__

    def to_be_sent(self) -> tuple[Any, str | None]:
        # Errors are sent as text: not all of them can be pickled.
        return self.value, self.problem

    def result(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.value


_NOTHING = _Outcome()


def _try(action: Callable[[], Any]) -> _Outcome:
    try:
        return _Outcome(value=action())
    except Exception as error:
        return _Outcome(error=error)

"""Work that one worker does for all, so that not every worker does it at once.

Every worker must call these at the same place. An error on the one is raised on
all, so that none waits for a worker that has ended.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from oseq.distributed.worker import Worker

T = TypeVar("T")


def on_chief(worker: Worker, action: Callable[[], T]) -> T:
    """Returns on all workers what ``action`` returns on the chief."""
    outcome = _try(action) if worker.is_chief else (None, None)
    result, error = worker.gather_objects(outcome)[0]
    if error is not None:
        raise error
    return result


def once_per_host(worker: Worker, action: Callable[[], T]) -> T:
    """Runs ``action`` on the first worker of each host, then on the others.

    The first leaves files behind (a cache) that the others then find.
    """
    outcome = _try(action) if worker.local_rank == 0 else (None, None)
    for error in worker.gather_objects(outcome[1]):
        if error is not None:
            raise error
    if worker.local_rank != 0:
        return action()
    result: Any = outcome[0]
    return result


def _try(action: Callable[[], Any]) -> tuple[Any, Exception | None]:
    """Returns what ``action`` returned and what it raised."""
    try:
        return action(), None
    except Exception as error:
        return None, error

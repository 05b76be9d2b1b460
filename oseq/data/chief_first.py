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
    result, error = _try(action) if worker.local_rank == 0 else (None, None)
    for failure in worker.gather_objects(error):
        if failure is not None:
            raise failure
    return result if worker.local_rank == 0 else action()


def _try(action: Callable[[], T]) -> tuple[Any, Exception | None]:
    try:
        return action(), None
    except Exception as error:
        return None, error

"""Failures of another worker, told apart from this one's own.

When one worker ends, the collectives of the others fail. That is a consequence: what
a user wants to read is the error of the first, so the others say one line and end
with an exit code of their own.
"""

from __future__ import annotations

from oseq.config.params import UserError

EXIT_CODE_LOST = 75  # EX_TEMPFAIL of sysexits.h: not this process's fault, try again
_SIGN = "Horovod has been shut down"  # however a worker ended, the others read this


class OtherWorkerError(UserError):
    """Another worker has failed or ended while this one needed it."""


def is_loss_of_worker(error: BaseException) -> bool:
    """Tells whether ``error`` is how a collective fails when another worker ends."""
    return _SIGN in str(error)

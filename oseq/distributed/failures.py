"""Failures of another worker, told apart from this one's own.

When one worker ends, the collectives of the others fail. That is a consequence: what
a user wants to read is the error of the first, so the others say one line and end
with an exit code of their own.
"""

from __future__ import annotations

from oseq.config.params import UserError

EXIT_CODE_LOST = 75  # EX_TEMPFAIL of sysexits.h: not this process's fault, try again


class OtherWorkerError(UserError):
    """Another worker has failed or ended while this one needed it."""


def is_loss_of_worker(error: BaseException) -> bool:
    """Tells whether ``error`` is how a collective fails when another worker ends.

    A worker that ends during a transfer leaves whatever the network says of it, and
    between transfers Horovod's own words. Mistakes in the use of a collective have
    other types.
    """
    import tensorflow as tf  # takes seconds, which the command line cannot spare

    return isinstance(error, tf.errors.UnknownError) and "Horovod" in str(error)

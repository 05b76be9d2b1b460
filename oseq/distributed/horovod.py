"""Horovod: the only module that imports it, and only when it is wanted."""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from oseq.config.params import ConfigError
from oseq.distributed.failures import is_loss_of_worker
from oseq.distributed.worker import Worker

# A worker that keeps the others waiting for so long has hung: all are ended. One of
# which nothing runs (SIGSTOP, a machine or a network that stands still) is missed much
# earlier, after HOROVOD_GLOO_TIMEOUT_SECONDS: 30 without MPI, and also at the start.
_STALL_SECONDS = 7200


class HorovodWorker(Worker):
    """One of the processes that ``horovodrun``, MPI or ``launch_workers`` started.

    Raises:
      ConfigError: Horovod is not installed.
    """

    def __init__(self) -> None:
        os.environ.setdefault(
            "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", str(_STALL_SECONDS)
        )
        self._has_gpus = bool(tf.config.list_physical_devices("GPU"))
        self._hvd = _import("horovod.tensorflow")
        if self._hvd.mpi_built() and not self._has_gpus:
            # Milliseconds between two looks for work, which under MPI go on while there
            # is none (docker/install_horovod.sh). Each costs the cores that compute
            # some time: with Horovod's own 1, up to a sixth of a single core.
            os.environ.setdefault("HOROVOD_CYCLE_TIME", "10")
        self._hvd.init()
        self.rank: int = self._hvd.rank()
        self.local_rank: int = self._hvd.local_rank()
        self.local_size: int = self._hvd.local_size()
        self.size: int = self._hvd.size()
        self._num_hosts: int = self._hvd.cross_size()
        self._num_gathers = 0

    def __str__(self) -> str:
        hosts = _count(self._num_hosts, "host")
        return f"{_count(self.size, 'worker')} on {hosts}"

    def all_reduce_sum(self, tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        sums: list[tf.Tensor] = self._hvd.grouped_allreduce(
            list(tensors), op=self._hvd.Sum
        )
        return sums

    def all_to_all(self, rows: tf.Tensor) -> tf.Tensor:
        received = self._hvd.alltoall(_in_transit(rows))
        return tf.ensure_shape(_arrived(received, rows.dtype), [self.size, None])

    def all_gather(self, row: tf.Tensor) -> tf.Tensor:
        if not self._has_gpus:
            # Gloo's all-gather sends and receives by turns, at half the link's speed.
            return self.all_to_all(tf.tile(row[tf.newaxis], [self.size, 1]))
        gathered = self._hvd.allgather(_in_transit(row)[tf.newaxis])
        return tf.ensure_shape(_arrived(gathered, row.dtype), [self.size, None])

    def broadcast(self, variables: Sequence[Any]) -> None:
        def values_of_chief() -> list[tf.Tensor]:
            tensors = [tf.convert_to_tensor(variable) for variable in variables]
            return [
                _arrived(self._hvd.broadcast(_in_transit(each), 0), each.dtype)
                for each in tensors
            ]

        values = tf.function(values_of_chief, autograph=False)()
        for variable, value in zip(variables, values, strict=True):
            variable.assign(value)

    def average(self, variables: Sequence[Any]) -> None:
        def sums() -> list[tf.Tensor]:
            values = [tf.cast(variable, tf.float32) for variable in variables]
            return self.all_reduce_sum(values)

        totals = tf.function(sums, autograph=False)()
        for variable, total in zip(variables, totals, strict=True):
            variable.assign(tf.cast(total / self.size, variable.dtype))

    def gather_objects(self, value: Any) -> list[Any]:
        self._num_gathers += 1
        name = f"oseq_objects_{self._num_gathers}"
        gathered: list[Any] = self._hvd.allgather_object(value, name=name)
        return gathered


def is_elastic() -> bool:
    """Tells whether ``horovodrun`` lets workers come and go during this run."""
    return os.environ.get("HOROVOD_ELASTIC") == "1"


class ElasticState:
    """What survives when workers are lost or arrive: the last committed snapshot.

    Attributes:
      snapshot: this worker's, any object; None before its first commit. Horovod gives
        rank 0 to a worker that was there before, so the chief has one.
    """

    def __init__(self) -> None:
        hvd = _import("horovod.tensorflow")
        elastic = _import("horovod.tensorflow.elastic")
        hvd.init()
        self.snapshot: Any = None
        # Snapshots stay where they are: Horovod would send them whole, 2 GiB at most.
        self._state = elastic.ObjectState(hvd.broadcast_object, hvd.rank, num_commits=0)
        self._state.sync = _raising_what_horovod_catches(self._state.sync)

    def commit(self, snapshot: Any) -> None:
        """Keeps ``snapshot``; all workers must commit the same one.

        Where workers have come or gone meanwhile, it does not return: ``run_elastic``
        calls its function anew.
        """
        self.snapshot = snapshot
        self._state.num_commits += 1
        self._state.commit()


def run_elastic(train: Callable[[ElasticState], None]) -> None:
    """Calls ``train`` until it returns, again whenever workers come or go.

    ``train`` makes its worker itself, and nothing of the call before may be left: the
    number of workers and their ranks have changed. What the chief has in its snapshot
    is to be given to the others.
    """
    elastic = _import("horovod.tensorflow.elastic")
    state = ElasticState()
    attempt = _raising_what_horovod_catches(lambda _: train(state))
    elastic.run(attempt)(state._state)


def _raising_what_horovod_catches(
    function: Callable[..., None],
) -> Callable[..., None]:
    """Returns a function that tells the loss of a worker from its other errors."""
    exceptions = _import("horovod.common.exceptions")

    @functools.wraps(function)
    def wrapped(*arguments: Any) -> None:
        try:
            function(*arguments)
        except Exception as error:
            if is_loss_of_worker(error):
                raise exceptions.HorovodInternalError(error) from error
            if isinstance(error, tf.errors.UnknownError):
                # Horovod would take it for the peaceful end of the run.
                raise RuntimeError(str(error)) from error
            raise

    return wrapped


@contextlib.contextmanager
def local_rendezvous(num_workers: int) -> Iterator[list[dict[str, str]]]:
    """Context with a server through which workers of this machine find each other.

    Yields:
      What each worker needs in its environment, in the order of ranks.

    Raises:
      ConfigError: Horovod is not installed.
    """
    gloo_run = _import("horovod.runner.gloo_run")
    hosts = _import("horovod.runner.common.util.hosts")
    http_server = _import("horovod.runner.http.http_server")
    slots = hosts.get_host_assignments(
        [hosts.HostInfo("localhost", num_workers)], num_workers
    )
    # Horovod's RendezvousServer would listen to the whole network.
    server = http_server.RendezvousHTTPServer(
        ("127.0.0.1", 0), http_server.RendezvousHandler, False
    )
    server.daemon_threads = True  # no open connection delays the end
    with server:
        server.init(slots)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        shared = gloo_run.create_run_env_vars(
            "127.0.0.1", ["lo"], str(server.server_port)
        )
        try:
            yield [shared | gloo_run.create_slot_env_vars(slot) for slot in slots]
        finally:
            server.shutdown()


def _import(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ConfigError(
            f"several workers need Horovod, which cannot be imported ({error}); "
            "docker/install_horovod.sh builds and installs it"
        ) from error


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _in_transit(tensor: tf.Tensor) -> tf.Tensor:
    """Returns a tensor in a type that Horovod carries; it knows no bfloat16."""
    if tensor.dtype == tf.bfloat16:
        # The same bits; nobody computes with them.
        return tf.bitcast(tensor, tf.float16)
    return tensor


def _arrived(tensor: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    return tf.bitcast(tensor, dtype) if tensor.dtype != dtype else tensor

"""Two nodes on one machine, to train over a network without having one.

Each node is a network namespace with an address, a host name and an SSH server of its
own; a pair of virtual Ethernet devices joins the two, at the speed of memory or at
that of a slow network. Nothing that runs in them reaches any other network.

    python -m tests.two_nodes [--rate_mbit=200] -- python run.py --config_file=...

runs a command on both by horovodrun, as root. Debian's packages iproute2,
openssh-server and openssh-client have all that it needs besides Horovod.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence, Set
from pathlib import Path

_PROGRAMS = ("ip", "tc", "ssh", "sshd", "ssh-keygen", "taskset", "unshare")
DEVICE = "eth0"  # on both nodes: Gloo is told one name for all
_ADDRESSES = ("192.0.2.1", "192.0.2.2")  # of a network that is nowhere (RFC 5737)
_PREFIX = "oseq"
# `ip netns exec NAME` shows what lies here in a folder NAME as if it were in /etc.
_ETC = Path("/etc/netns")
_SSH_CONFIG = """
IdentityFile /etc/ssh/client_key
IdentitiesOnly yes
StrictHostKeyChecking no
UserKnownHostsFile /dev/null
LogLevel ERROR
ConnectionAttempts 10
"""
_SSHD_CONFIG = """
HostKey /etc/ssh/host_key
AuthorizedKeysFile /etc/ssh/client_key.pub
PermitRootLogin prohibit-password
PasswordAuthentication no
StrictModes no
UsePAM yes
PidFile none
"""
_serial = itertools.count(1)


class TwoNodes:
    """A context in which two nodes exist; see the module.

    What a killed process left behind is removed when the next one makes nodes.

    Args:
      rate_mbit: speed of the link in each direction, in 10^6 bits a second; None: as
        fast as the machine is.
      cores: the one core of each node; None: each has all.

    Attributes:
      names: the nodes' host names.
    """

    def __init__(
        self, rate_mbit: float | None = None, cores: tuple[int, int] | None = None
    ):
        stem = f"{_PREFIX}-{os.getpid()}-{next(_serial)}"
        self.names = (f"{stem}-a", f"{stem}-b")
        self._rate_mbit = rate_mbit
        self._cores = cores
        self._is_shaped = False
        self._servers: list[subprocess.Popen[bytes]] = []

    @staticmethod
    def missing() -> str | None:
        """Returns why there can be no nodes here; None where there can be."""
        if os.geteuid() != 0:
            return "needs root, to make network namespaces"
        absent = [program for program in _PROGRAMS if _path_of(program) is None]
        if absent:
            return (
                f"needs {', '.join(absent)}: "
                "apt-get install iproute2 openssh-server openssh-client"
            )
        if importlib.util.find_spec("horovod") is None:
            return "needs Horovod: docker/install_horovod.sh"
        probe = f"{_PREFIX}-{os.getpid()}-probe"
        try:
            _make_namespaces(probe, probe)
            _run(*_inside(probe), *_shaping("replace", 1))
        except OSError as error:
            return f"cannot make network namespaces: {error}"
        finally:
            _remove(probe)
        return None

    def __enter__(self) -> TwoNodes:
        _remove_leftovers()
        # SIGTERM is taken for Ctrl-C while there is something to be removed.
        self._handler = signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            _make_namespaces(*self.names)
            self._configure()
            for node in (0, 1):
                self._start_server(node)
            self.shape(self._rate_mbit)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for name in self.names:
            _remove(name)
        for server in self._servers:
            server.wait()
        signal.signal(signal.SIGTERM, self._handler)

    @property
    def hosts(self) -> str:
        """The value of ``horovodrun -H`` for one worker on each node."""
        return ",".join(f"{name}:1" for name in self.names)

    def shape(self, rate_mbit: float | None) -> None:
        """Gives the link another speed; None: as fast as the machine is."""
        if rate_mbit is None and not self._is_shaped:
            return
        action = "delete" if rate_mbit is None else "replace"
        for name in self.names:
            _run(*_inside(name), *_shaping(action, rate_mbit))
        self._is_shaped = rate_mbit is not None

    def bytes_sent(self) -> tuple[int, int]:
        """Returns how many bytes each node has sent, headers included."""
        file = f"/sys/class/net/{DEVICE}/statistics/tx_bytes"
        first, second = (int(_run(*_inside(name), "cat", file)) for name in self.names)
        return first, second

    def processes(self, node: int, text: str) -> list[int]:
        """Returns ids of a node's processes whose command line starts so."""
        pids = _pids(self.names[node])
        return [pid for pid in pids if _command_line(pid).startswith(text)]

    def start_process(self, node: int, *command: object) -> subprocess.Popen[str]:
        """Starts a command on a node; it ends also when the nodes go.

        Returns:
          The process; what it prints, errors too, is its standard output.
        """
        return subprocess.Popen(
            [*self._command_on(node), *map(str, command)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,  # Ctrl-C is for whoever made the nodes
        )

    def start_horovodrun(
        self, *command: object, flags: Sequence[object] | None = None
    ) -> subprocess.Popen[str]:
        """Starts horovodrun on the first node, as ``start_process`` does.

        Args:
          command: for every worker.
          flags: which workers; None: one on each node.
        """
        return self.start_process(
            0,
            *(sys.executable, "-m", "horovod.runner.launch"),
            *("--gloo", "--disable-cache", "--network-interfaces", DEVICE),
            *(["-np", 2, "-H", self.hosts] if flags is None else flags),
            *command,
        )

    def horovodrun(
        self, *command: object, timeout: float, flags: Sequence[object] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Runs horovodrun to its end; see ``start_horovodrun``.

        Raises:
          subprocess.TimeoutExpired: it took longer than ``timeout`` seconds; the
            nodes' processes have been ended.
        """
        process = self.start_horovodrun(*command, flags=flags)
        with self.ending(process):
            out, _ = process.communicate(timeout=timeout)
        return subprocess.CompletedProcess(process.args, process.returncode, out)

    @contextlib.contextmanager
    def ending(
        self, *processes: subprocess.Popen[str], seconds: float | None = None
    ) -> Iterator[None]:
        """Ends a job's processes on both nodes in the end, however that comes.

        Args:
          processes: that were started; their remaining output is lost.
          seconds: after so many, the context's end is not waited for.
        """
        timer = threading.Timer(seconds or 0, self._end_jobs)
        timer.daemon = True
        if seconds is not None:
            timer.start()
        try:
            yield
        finally:
            timer.cancel()
            self._end_jobs()
            for process in processes:
                process.communicate()

    def _end_jobs(self) -> None:
        servers = {server.pid for server in self._servers}
        for name in self.names:
            _kill(name, spared=servers)

    def _configure(self) -> None:
        """Writes the files of /etc that the nodes see instead of the machine's."""
        hosts = "127.0.0.1 localhost\n" + "".join(
            f"{address} {name}\n"
            for address, name in zip(_ADDRESSES, self.names, strict=True)
        )
        for name in self.names:
            (_ETC / name / "ssh").mkdir(parents=True)
            (_ETC / name / "hosts").write_text(hosts)
        first, second = (_ETC / name / "ssh" for name in self.names)
        (first / "ssh_config").write_text(_SSH_CONFIG)
        (first / "sshd_config").write_text(_SSHD_CONFIG)
        for key in ("host_key", "client_key"):
            _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", first / key)
        shutil.copytree(first, second, dirs_exist_ok=True)

    def _start_server(self, node: int) -> None:
        Path("/run/sshd").mkdir(exist_ok=True)  # its services make it, where run
        command = [*self._command_on(node), str(_path_of("sshd")), "-D"]
        server = subprocess.Popen(
            [*command, "-E", "/etc/ssh/sshd.log"], start_new_session=True
        )
        self._servers.append(server)

    def _command_on(self, node: int) -> list[str]:
        """Returns a command's start that puts it onto a node."""
        name = self.names[node]
        pinned = (
            [] if self._cores is None else ["taskset", "-c", str(self._cores[node])]
        )
        named = ["unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', name]
        return [*_inside(name), *pinned, *named]


def _make_namespaces(first: str, second: str) -> None:
    """Makes namespaces with a link; the two may be one."""
    other = DEVICE if first != second else "eth1"
    for name in dict.fromkeys((first, second)):
        _run("ip", "netns", "add", name)
    _run(
        *("ip", "link", "add", DEVICE, "netns", first),
        *("type", "veth", "peer", "name", other, "netns", second),
    )
    ends = ((first, DEVICE), (second, other))
    for (name, device), address in zip(ends, _ADDRESSES, strict=True):
        _run("ip", "-n", name, "address", "add", f"{address}/24", "dev", device)
        for up in ("lo", device):
            _run("ip", "-n", name, "link", "set", up, "up")


def _shaping(action: str, rate_mbit: float | None) -> list[str]:
    command = ["tc", "qdisc", action, "dev", DEVICE, "root"]
    if rate_mbit is None:
        return command
    rate = ["rate", f"{rate_mbit}mbit", "burst", "256kb", "latency", "50ms"]
    return [*command, "tbf", *rate]


def _inside(name: str) -> tuple[str, ...]:
    return ("ip", "netns", "exec", name)


def _remove_leftovers() -> None:
    """Removes the nodes of processes that are no more."""
    names = {line.split()[0] for line in _run("ip", "netns", "list").splitlines()}
    if _ETC.is_dir():
        names |= {folder.name for folder in _ETC.iterdir()}
    for name in names:
        found = re.fullmatch(rf"{_PREFIX}-(\d+)-.+", name)
        if found and not Path("/proc", found[1]).exists():
            _remove(name)


def _remove(name: str) -> None:
    """Removes a node, or what there is of it, and ends all that runs there."""
    _kill(name)
    subprocess.run(["ip", "netns", "delete", name], capture_output=True)
    shutil.rmtree(_ETC / name, ignore_errors=True)
    with contextlib.suppress(OSError):
        _ETC.rmdir()  # unless somebody else uses it


def _kill(name: str, spared: Set[int] = frozenset()) -> None:
    """Ends the processes of a node, also those that the ending ones still start."""
    deadline = time.monotonic() + 10
    while pids := set(_pids(name)) - spared:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise TimeoutError(f"{name}: processes {sorted(pids)} do not end")
        time.sleep(0.05)


def _pids(name: str) -> list[int]:
    found = subprocess.run(
        ["ip", "netns", "pids", name], capture_output=True, text=True
    )
    return [int(pid) for pid in found.stdout.split()]  # none where the node is gone


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:  # it has ended
        return ""


def _path_of(program: str) -> str | None:
    return shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")


def _run(*command: object) -> str:
    """Returns what a command printed.

    Raises:
      OSError: it failed; shows what it had to say.
    """
    arguments = [str(argument) for argument in command]
    done = subprocess.run(arguments, capture_output=True, text=True)
    if done.returncode != 0:
        raise OSError(f"{' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rate_mbit", type=float)
    parser.add_argument("--cores", type=int, nargs=2, help="the one core of each node")
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    if reason := TwoNodes.missing():
        parser.error(reason)
    cores = tuple(arguments.cores) if arguments.cores else None
    with TwoNodes(arguments.rate_mbit, cores) as nodes:
        process = nodes.start_horovodrun(*arguments.command)
        with nodes.ending(process):
            assert process.stdout is not None
            for line in process.stdout:
                print(line, end="", flush=True)
            code = process.wait()
        for name, sent in zip(nodes.names, nodes.bytes_sent(), strict=True):
            print(f"{name} sent {sent / 1e6:,.1f} MB")
    return code


if __name__ == "__main__":
    sys.exit(main())

"""All benchmarks, one after the other: ``python -m tests.benchmarks [names...]``.

Each is a module with a command of its own and says itself what it skips, and why.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.benchmarks.report import REPOSITORY, make_parser

NAMES = (
    *("matmul", "training", "steps", "loader", "audio", "startup"),
    *("decoding", "parity", "peers", "recurrent", "weak_scaling", "scaling"),
)


def main() -> int:
    parser = make_parser(__doc__)
    parser.add_argument("names", nargs="*", metavar="names", help=", ".join(NAMES))
    parser.add_argument(
        "--logdir", type=Path, help="decoding, parity: run of a trained model"
    )
    arguments = parser.parse_args()
    for name in arguments.names:
        if name not in NAMES:
            parser.error(f"{name} is no benchmark; choose from {', '.join(NAMES)}")
    failed = []
    for name in arguments.names or NAMES:
        print(f"\n== {name}", flush=True)
        command = [sys.executable, "-m", f"tests.benchmarks.{name}"]
        if arguments.quick:
            command.append("--quick")
        if name in ("decoding", "parity") and arguments.logdir is not None:
            command.append(f"--logdir={arguments.logdir.resolve()}")
        if subprocess.run(command, cwd=REPOSITORY).returncode != 0:
            failed.append(name)
    if failed:
        print(f"\nfailed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

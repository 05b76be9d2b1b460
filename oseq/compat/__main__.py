"""``python -m oseq.compat old.py > new.py``: an old config file in native form."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from oseq.compat.recognize import is_old_config
from oseq.config.params import ConfigError, UserError
from oseq.quiet_import import import_tensorflow_quietly


def main(argv: Sequence[str] | None = None) -> int:
    """Writes the file to standard output, and what was translated to standard error.

    Returns:
      The exit code: 0, or 2 for a file that cannot be translated.
    """
    parser = argparse.ArgumentParser(
        prog="python -m oseq.compat",
        description="Write a config file of OpenSeq2Seq's in oseq's own form.",
    )
    parser.add_argument("config_file", type=Path)
    file = parser.parse_args(argv).config_file
    try:
        if not file.is_file():
            raise ConfigError(f"{file}: no such file")
        if not is_old_config(file):
            raise ConfigError(f"{file}: imports nothing of OpenSeq2Seq's")
        import_tensorflow_quietly()
        from oseq.compat.load import load_old_config
        from oseq.compat.source import to_source

        config, notes = load_old_config(file)
        source = to_source(config, f"{file.name} of OpenSeq2Seq, in oseq's form.")
    except UserError as error:
        print(f"oseq.compat: error: {error}", file=sys.stderr)
        return 2
    print("\n".join(notes), file=sys.stderr)
    print(source, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())

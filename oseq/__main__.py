"""``python -m oseq``."""

import sys

from oseq.cli import main

if __name__ == "__main__":
    sys.exit(main())

"""``python run.py --config_file=... --mode=train_eval``: oseq without installing it."""

import sys

from oseq.cli import main

if __name__ == "__main__":
    sys.exit(main())

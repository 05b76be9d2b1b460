"""What all tests share: a seed, the shared corpora, and when slow tests run."""

from __future__ import annotations

import os
import signal
from pathlib import Path

# Before TensorFlow is imported: its start-up lines would drown pytest's.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import pytest

# Started in the background or by nohup, the tests would ignore these signals, and so
# would the processes that they interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

REPOSITORY = Path(__file__).resolve().parents[1]


def _data_dir() -> Path:
    return Path(os.environ.get("OSEQ_DATA", REPOSITORY.parent / "shared" / "data"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--run-slow", action="store_true", help="also run the tests marked slow"
    )


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    run_slow = config.getoption("--run-slow") or os.environ.get("OSEQ_SLOW") == "1"
    data_dir = _data_dir()
    needs_slow = pytest.mark.skip(reason="slow: run with --run-slow or OSEQ_SLOW=1")
    needs_data = pytest.mark.skip(
        reason=f"corpora not found at {data_dir}; set OSEQ_DATA to their directory"
    )
    for item in items:
        if item.get_closest_marker("slow") and not run_slow:
            item.add_marker(needs_slow)
        if item.get_closest_marker("data") and not data_dir.is_dir():
            item.add_marker(needs_data)


@pytest.fixture
def data_dir() -> Path:
    """Directory of the shared corpora; only for tests marked ``data``."""
    return _data_dir()


@pytest.fixture(autouse=True)
def _seed() -> None:
    import keras

    keras.utils.set_random_seed(20)

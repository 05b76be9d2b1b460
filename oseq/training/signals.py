"""Ctrl-C and SIGTERM as a request to stop after the current step."""

from __future__ import annotations

import logging
import signal
import threading
from types import FrameType
from typing import Any

_log = logging.getLogger(__name__)


class StopSignals:
    """Context in which the first signal is noted and the second one acts at once.

    A signal that the process was started to ignore (nohup, a shell's background job)
    stays ignored.

    Attributes:
      received: the name of the first signal, or None.
    """

    _SIGNALS = (signal.SIGINT, signal.SIGTERM)

    def __init__(self) -> None:
        self.received: str | None = None
        self._previous: dict[signal.Signals, Any] = {}

    def __enter__(self) -> StopSignals:
        # Python lets only the main thread handle signals.
        if threading.current_thread() is threading.main_thread():
            for number in self._SIGNALS:
                if signal.getsignal(number) is signal.SIG_IGN:
                    continue
                self._previous[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, *unused: object) -> None:
        self._give_back()

    def _receive(self, number: int, frame: FrameType | None) -> None:
        del frame
        name = signal.Signals(number).name
        if self.received is not None:
            self._give_back()
            signal.raise_signal(number)
            return
        self.received = name
        # No warning: of several workers, which all get the signal, one is to say it.
        _log.info("%s: finishing this step and saving; once more to stop at once", name)

    def _give_back(self) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous.clear()

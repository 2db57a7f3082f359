"""How a process is told to end: what a person, a terminal that closes, or a parent that dies sends it."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable

ENDING = {signal.SIGTERM: 143, signal.SIGHUP: 129}
"""Signals that are heeded as Ctrl-C is -> exit status of a command that one has ended."""
_heard: list[int] = []
"""Signals that were heeded."""
_SET_PDEATHSIG = 1  # prctl(2)
_PATIENCE = 5.0
"""Seconds in which a process whose parent has died may save what it has."""


class Terminated(KeyboardInterrupt):
    """A signal other than that of Ctrl-C, once it is heeded: a command ends as after Ctrl-C, with what it has, and
    another exit status."""

    def __init__(self, number: int = signal.SIGTERM) -> None:
        super().__init__(signal.Signals(number).name)
        self.status = ENDING[signal.Signals(number)]


def heed() -> None:
    """Make of SIGTERM and SIGHUP what Ctrl-C is. A second one of any kind, while the first is dealt with, is passed
    over: what it would leave undone is done in a moment."""

    def end(number: int, _: object) -> None:
        for other in (signal.SIGINT, *ENDING):
            signal.signal(other, signal.SIG_IGN)
        _heard.append(number)
        raise Terminated(number)

    _heard.clear()
    for number in ENDING:
        if signal.getsignal(number) != signal.SIG_IGN:  # nohup(1) has it passed over
            signal.signal(number, end)


def status_of(stop: KeyboardInterrupt) -> int:
    """The exit status of a command that was ended. A library that waits may have made a plain interruption of what a
    signal raised: it is the signal that counts."""
    if isinstance(stop, Terminated):
        return stop.status
    return ENDING[signal.Signals(_heard[-1])] if _heard else 130


def ends_with_parent(number: signal.Signals) -> Callable[[], object]:
    """What a process does before it becomes another program (`preexec_fn`): it is sent this signal when its parent
    ends."""
    library = ctypes.CDLL(None)
    return lambda: library.prctl(_SET_PDEATHSIG, number)


def end_with(parent: int) -> None:
    """Be told (SIGTERM) when the process that started this one ends, whose id is `parent`, and be killed some seconds
    later. Raises Terminated where it has ended already."""

    def end(number: int, _: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, _PATIENCE)  # its SIGALRM ends the process, whatever it is in the middle of
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise Terminated(number)

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    ctypes.CDLL(None).prctl(_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        raise Terminated

"""The bar of a long command, and a line a minute where there is no terminal."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.progress import Progress, ProgressColumn

MINUTE = 60.0


class EveryMinute:
    """Is a minute over since it was last, or since the beginning?"""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.began = self._last = clock()

    def over(self) -> bool:
        """At most once a minute."""
        if self._clock() - self._last < MINUTE:
            return False
        self._last = self._clock()
        return True

    @property
    def minutes(self) -> float:
        """Since the beginning."""
        return (self._clock() - self.began) / MINUTE


class Bar(Progress):
    """As Rich's, gone when it is done. Where the console is no terminal it would show nothing: whenever it is told of
    progress, and a minute is over, it prints what is under way."""

    def __init__(self, *columns: ProgressColumn, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(*columns, console=console, transient=True)
        self._minute = EveryMinute(clock)

    def update(self, *args: Any, **kwargs: Any) -> None:
        """As Rich's."""
        super().update(*args, **kwargs)
        self._tell()

    def advance(self, *args: Any, **kwargs: Any) -> None:
        """As Rich's."""
        super().advance(*args, **kwargs)
        self._tell()

    def _tell(self) -> None:
        if self.console.is_terminal or not self._minute.over():
            return
        for task in self.tasks:
            count = f": {task.completed:g} of {task.total:g}" if task.total else ""
            line = f"{self._minute.minutes:.0f} min: {task.description}{count}"
            self.console.print(line, markup=False, highlight=False, soft_wrap=True)

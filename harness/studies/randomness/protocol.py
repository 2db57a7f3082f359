"""Three switches, and the four settings of them: which runs there are."""

from __future__ import annotations

from dataclasses import dataclass

from harness.studies.runs.plan import Run


@dataclass(frozen=True)
class Setting:
    """initial, order: have all models of it the same initial parameters, the same order (and augmentation) of samples?
    framework: is the framework deterministic?"""

    name: str
    initial: bool
    order: bool
    framework: bool
    means: str


SETTINGS = (
    Setting("algo+impl", False, False, False, "initialisation, order and framework all vary"),
    Setting("algo", False, False, True, "initialisation and order vary; the framework is deterministic"),
    Setting("impl", True, True, False, "only the framework varies"),
    Setting("control", True, True, True, "nothing varies: every measure has to be exactly 0"),
)
"""The paper's, the noisiest first."""
CONTROL = "control"


def setting_of(name: str) -> Setting:
    """Raises ValueError."""
    found = next((setting for setting in SETTINGS if setting.name == name), None)
    if not found:
        raise ValueError(f"no setting is called {name!r}; there are {', '.join(s.name for s in SETTINGS)}")
    return found


def run_of(framework: str, setting: Setting, number: int, seed: int, threads: int) -> Run:
    """A model of a setting. What varies has a seed of its own, which is as random as none and can be repeated. Where
    the framework varies, processes have 1 to `threads` threads in turn: on a CPU they are what the order of additions
    depends on, as it does on the scheduling of a GPU."""
    return Run(
        framework, setting.name, number, seed if setting.initial else seed + 1 + number,
        seed if setting.order else seed + 1 + number, setting.framework,
        1 if setting.framework else 1 + number % threads,
    )  # fmt: skip


def runs_of(
    frameworks: tuple[str, ...], settings: tuple[Setting, ...], models: int, seed: int, threads: int
) -> list[Run]:
    """All of them, model after model, so that an interrupted study has some of each."""
    return [
        run_of(framework, setting, number, seed, threads)
        for number in range(models)
        for framework in frameworks
        for setting in settings
    ]

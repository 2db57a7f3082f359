"""Hypothesis profiles: how much a run of the tests draws."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

from generators.ops import ON_REQUEST, OPS

# health checks that do not apply: running a compiler on an example is slow by nature
_HEALTH = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example)
_CI, _NIGHTLY, _QUICK = "ci", "nightly", "quick"


def register() -> None:
    """Make the profiles known and load the one for this place; `--hypothesis-profile` overrides it."""
    settings.register_profile("dev", max_examples=30, deadline=None, suppress_health_check=_HEALTH)
    settings.register_profile(_CI, parent=settings.get_profile("dev"), max_examples=8, derandomize=True, database=None)
    settings.register_profile(_QUICK, parent=settings.get_profile(_CI), max_examples=5)
    settings.register_profile(_NIGHTLY, parent=settings.get_profile("dev"), max_examples=2000)


def choose() -> None:
    """`ci` where the environment says so, else `dev`."""
    settings.load_profile(_CI if os.environ.get("CI") else "dev")


def nightly() -> bool:
    """Is this the profile that leaves nothing out?"""
    return settings.get_current_profile_name() == _NIGHTLY


def looked_at() -> tuple[str, ...]:
    """The operators that tests over all of them look at: all at night; else all that are drawn, and every fourth of
    those that are drawn on request only."""
    left_out = () if nightly() else [name for i, name in enumerate(ON_REQUEST) if i % 4]
    return tuple(name for name in OPS if name not in set(left_out))


def share() -> str:
    """The argument of the mark `slow` that says one in how many of a test's items runs; empty where all do."""
    return {_QUICK: "one_in", _CI: "ci"}.get(str(settings.get_current_profile_name()), "")

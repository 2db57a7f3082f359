"""The targets: one file a framework. To add one, write its file and name it here."""

from __future__ import annotations

from fnmatch import fnmatchcase

from harness.backends import jax, onnxruntime, tensorflow, torch, tvm
from harness.backends.target import Level, Target

TARGETS: dict[str, Target] = {
    target.name: target for module in (torch, tensorflow, jax, onnxruntime, tvm) for target in module.TARGETS
}


def select(patterns: str) -> list[Target]:
    """Targets whose names match one of the comma-separated globs, in order. Raises ValueError for a glob that
    matches nothing, so that a mistyped name is never dropped."""
    chosen: set[str] = set()
    for pattern in (p.strip() for p in patterns.split(",")):
        matched = {name for name in TARGETS if fnmatchcase(name, pattern)}
        if not matched:
            raise ValueError(f"no target matches {pattern!r}; known targets: {', '.join(TARGETS)}")
        chosen |= matched
    return [target for name, target in TARGETS.items() if name in chosen]


__all__ = ["TARGETS", "Level", "Target", "select"]

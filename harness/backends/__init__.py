"""The targets: one file a framework. To add one, write its file and name it here."""

from __future__ import annotations

from harness.backends import jax, onnxruntime, tensorflow, torch, tvm
from harness.backends.target import Level, Target
from harness.globs import matching

TARGETS: dict[str, Target] = {
    target.name: target for module in (torch, tensorflow, jax, onnxruntime, tvm) for target in module.TARGETS
}


def select(patterns: str) -> list[Target]:
    """Targets whose names match one of the comma-separated globs, in order. Raises ValueError for a glob that
    matches nothing."""
    return [TARGETS[name] for name in matching(patterns, TARGETS, "target")]


__all__ = ["TARGETS", "Level", "Target", "select"]

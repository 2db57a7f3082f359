"""The targets: one file a framework. To add one, write its file and name it here."""

from __future__ import annotations

from fnmatch import fnmatchcase

from harness.backends import iree, jax, litert, onnxruntime, openvino, tensorflow, torch, tvm
from harness.backends.target import Level, Target
from harness.globs import matching

_FILES = (torch, tensorflow, jax, onnxruntime, tvm, litert, openvino, iree)
_FILES = (torch, tensorflow, jax, onnxruntime, tvm, litert, openvino, iree)
TARGETS: dict[str, Target] = {target.name: target for file in _FILES for target in file.TARGETS}


def select(patterns: str) -> list[Target]:
    """Targets whose names match one of the comma-separated globs, in order; those that are to be `asked` for by name
    are not among what `*` chooses. Raises ValueError for a glob that matches nothing."""
    chosen = matching(patterns, TARGETS, "target")
    named = [glob for glob in map(str.strip, patterns.split(",")) if glob != "*"]
    return [
        TARGETS[name] for name in chosen if not TARGETS[name].asked or any(fnmatchcase(name, glob) for glob in named)
    ]


__all__ = ["TARGETS", "Level", "Target", "select"]

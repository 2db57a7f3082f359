"""The targets: one file a framework, with a tuple `TARGETS`. To add one, write its file."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

from generators.discovery import collected
from harness.backends.target.target import Level, Target
from harness.execute.globs import matching

_FIRST = (
    *("torch", "tensorflow", "jax", "onnxruntime", "tvm.levels", "tvm.variants", "tvm.optional"),
    *("tvm.traced", "litert", "openvino", "iree", "keras", "executorch", "ncnn"),
)
TARGETS: dict[str, Target] = collected(__name__, "TARGETS", _FIRST)
"""By name. What is not named in _FIRST comes after it, in alphabetical order of the files."""


def select(patterns: str, among: Mapping[str, Target] = TARGETS) -> list[Target]:
    """Targets whose names match one of the comma-separated globs, in order, then those without passes that are named
    after a ~ (tvm-O3~FuseOps); those that are `opt_in` are not among what `*` chooses. Raises
    ValueError for a glob that matches nothing, and for a pass that is not there."""
    listed = [glob.strip() for glob in patterns.split(",")]
    whole = [glob for glob in listed if "~" not in glob]
    chosen = matching(",".join(whole), among, "target") if whole else ()
    named = [glob for glob in whole if glob != "*"]
    found = [name for name in chosen if not among[name].opt_in or any(fnmatchcase(name, glob) for glob in named)]
    without = [
        among[name].without(off)
        for glob, *off in (glob.split("~") for glob in listed if "~" in glob)
        for name in matching(glob, among, "target")
    ]
    return [*(among[name] for name in found), *without]


__all__ = ["TARGETS", "Level", "Target", "select"]

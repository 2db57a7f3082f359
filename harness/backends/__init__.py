"""The targets: one file a framework. To add one, write its file and name it here."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

from harness.backends import executorch, iree, jax, keras, litert, ncnn, onnxruntime, openvino, tensorflow, torch
from harness.backends.target.target import Level, Target
from harness.backends.tvm import levels as tvm
from harness.backends.tvm import variants as tvm_variants
from harness.execute.globs import matching

_FILES = (torch, tensorflow, jax, onnxruntime, tvm, tvm_variants, litert, openvino, iree, keras, executorch, ncnn)
TARGETS: dict[str, Target] = {target.name: target for file in _FILES for target in file.TARGETS}


def select(patterns: str, among: Mapping[str, Target] = TARGETS) -> list[Target]:
    """Targets whose names match one of the comma-separated globs, in order, then those without passes that are named
    after a ~ (tvm-O3~FuseOps); those that are to be `asked` for by name are not among what `*` chooses. Raises
    ValueError for a glob that matches nothing, and for a pass that is not there."""
    listed = [glob.strip() for glob in patterns.split(",")]
    whole = [glob for glob in listed if "~" not in glob]
    chosen = matching(",".join(whole), among, "target") if whole else ()
    named = [glob for glob in whole if glob != "*"]
    found = [name for name in chosen if not among[name].asked or any(fnmatchcase(name, glob) for glob in named)]
    without = [
        among[name].without(off)
        for glob, *off in (glob.split("~") for glob in listed if "~" in glob)
        for name in matching(glob, among, "target")
    ]
    return [*(among[name] for name in found), *without]


__all__ = ["TARGETS", "Level", "Target", "select"]

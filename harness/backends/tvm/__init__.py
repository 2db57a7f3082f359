"""TVM (Relax): its levels, and variants of the highest one."""

from harness.backends.tvm import levels, variants

TARGETS = (*levels.TARGETS, *variants.TARGETS)

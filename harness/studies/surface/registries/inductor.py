"""Inductor: its table of lowerings."""

from __future__ import annotations

from harness.studies.surface.registry import Registry, Tracer

TRACER = Tracer("inductor", "torch-inductor", ("torch",), ("torch",), every=5)

REGISTRIES = (Registry("inductor", ("inductor",), TRACER.modules, TRACER.packages, TRACER, "torch-inductor*"),)

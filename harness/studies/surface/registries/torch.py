"""PyTorch: the schemas of its dispatcher."""

from __future__ import annotations

from harness.studies.surface.registry import Registry, Tracer

TRACER = Tracer("torch", "torch-eager", ("torch",), ("torch",))

REGISTRIES = (Registry("torch", ("torch",), TRACER.modules, TRACER.packages, TRACER, "torch-*"),)

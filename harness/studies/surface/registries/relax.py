"""Relax: its operators."""

from __future__ import annotations

from harness.studies.surface.registry import Registry, Tracer

TRACER = Tracer("relax", "tvm-O0", ("tvm", "tvm.relax"), ("apache-tvm",))

REGISTRIES = (Registry("relax", ("relax",), TRACER.modules, TRACER.packages, TRACER, "tvm-*"),)

"""JAX: the primitives of jax.lax."""

from __future__ import annotations

from harness.studies.surface.registry import Registry, Tracer

TRACER = Tracer("jax", "jax-jit", ("jax", "jax.numpy"), ("jax",))

REGISTRIES = (Registry("jax", ("jax",), TRACER.modules, TRACER.packages, TRACER, "jax-*,xla-*", ("jax2tf",)),)

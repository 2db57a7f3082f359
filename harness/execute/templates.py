"""Jinja templates, which stand beside the modules that fill them, named by their path in this package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

_TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parents[1]), undefined=StrictUndefined,
    trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
)  # fmt: skip


def render(name: str, **fields: Any) -> str:
    """The template (`strategies/jax/program.py.j2`) with these fields; one that it lacks raises UndefinedError."""
    return _TEMPLATES.get_template(name).render(**fields)

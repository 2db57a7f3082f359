"""The command `bounds`: what the questions of values and of gradients allow operators alone."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import typer
from rich.table import Column, Table

from generators.ops import OPS
from harness.commands.shared.terminal import Json, fail, named, print_wide, say, write_json
from harness.questions.derivatives.gradient import differentiable
from harness.studies.errors.allowed import allowed
from oracles.derivatives import gradient
from oracles.questions import forward

DTYPES = ("float32", "float64", "float16", "bfloat16")
"""Of elements and of gradients."""


def bounds(
    operator_globs: Annotated[str, typer.Argument(metavar="OPERATORS", help="Globs of operators.")] = "*",
    dtype: Annotated[str, typer.Option(help=f"One of {', '.join(DTYPES)}.")] = "float32",
    cases: Annotated[int, typer.Option(min=1, help="Drawn cases of each operator.")] = 6,
    json_file: Json = None,
) -> None:
    """How much error is allowed, forwards and of gradients: medians, relative, in units of roundoff. Runs no target."""
    if dtype not in DTYPES:
        raise fail(f"--dtype: {dtype!r} is none of {', '.join(DTYPES)}")
    names = [name for name in named(operator_globs, OPS, "operator") if differentiable(name)]
    headings = ("forward", "gradient", "undetermined %", "gradient's")
    table = Table("operator", *(Column(heading, justify="right") for heading in headings))
    found = {name: [allowed(name, dtype, cases, q.expect) for q in (forward, gradient)] for name in names}
    both = {name: pair for name, pair in found.items() if all(one.elements for one in pair)}
    if not both:
        raise fail(f"no operator that matches {operator_globs!r} has a gradient in {dtype}")
    for name, pair in both.items():
        medians, open_ = ([f"{one.median:.1f}" for one in pair], [f"{100 * one.undetermined:.0f}" for one in pair])
        table.add_row(name, *medians, *open_)
    print_wide(table)
    first, second = (float(np.median([pair[i].median for pair in both.values()])) for i in (0, 1))
    more = sum(gradient_.median > 2 * forward_.median + 1e-6 for forward_, gradient_ in both.values())
    said = f"{len(both)} operators: median {first:.1f} forward, {second:.1f} of gradients, in {more} more than twice"
    say(said)
    write_json(json_file, {name: {"forward": a.median, "gradient": b.median} for name, (a, b) in both.items()})


COMMANDS = (bounds,)

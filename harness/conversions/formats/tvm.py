"""TVM's levels O0 to O3 on files of the formats that it imports: imported and compiled in one process."""

from __future__ import annotations

from harness.backends.target.text import before, swapped
from harness.backends.tvm.levels import BEFORE, loads
from harness.conversions.formats.format import Runner
from harness.conversions.tvm import EDGES

_CALL = """
    def call(*arrays):
        returned = machine["main"](*[tvm.runtime.tensor(array) for array in arrays])
        return [value.numpy() for value in ([returned] if hasattr(returned, "numpy") else returned)]

    return *[[tuple(port) for port in signature[side]] for side in ("inputs", "outputs")], call
"""


def _open(convert: str, level: int) -> str:
    """The importer of a conversion, followed by the pipeline of a level of the target that runs drawn graphs."""
    imported = swapped(before(convert, "    tvm.compile("), ("def convert(source, target):", "def open_model(source):"))
    pipeline = before(loads(level, BEFORE[level])[0], "\n    def run(").partition("    target = ")
    compiled = swapped(
        "".join(pipeline[1:]),
        ('relax.transform.BindParams("main", parameters),\n        ', ""),
        ("tvm.compile(bb.get(), ", "tvm.compile(module, "),
    )
    return imported + compiled + _CALL


RUNNERS = tuple(
    Runner(
        f"tvm-O{level}-{edge.source}",
        edge.source,
        "tvm-importer",
        edge.modules,
        edge.packages,
        _open(edge.convert, level),
        kin=(f"tvm-O{level}",),
        refuses=edge.refuses,
        level=level,
        slow=True,
    )
    for edge in EDGES
    for level in BEFORE
)

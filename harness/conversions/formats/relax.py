"""A model that TVM has compiled for its virtual machine: a shared library, and beside it its signature (.json), which
the library does not tell."""

from __future__ import annotations

from pathlib import Path

from harness.conversions.formats.format import Format, Runner, begins

_OPEN = """
def open_model(path):
    import json
    from pathlib import Path

    import tvm
    from tvm import relax

    signature = json.loads(Path(path).with_suffix(".json").read_text(encoding="utf-8"))
    machine = relax.VirtualMachine(tvm.runtime.load_module(path), tvm.cpu())

    def call(*arrays):
        returned = machine["main"](*[tvm.runtime.tensor(array) for array in arrays])
        return [value.numpy() for value in ([returned] if hasattr(returned, "numpy") else returned)]

    return *[[tuple(port) for port in signature[side]] for side in ("inputs", "outputs")], call
"""


def check(path: Path) -> str | None:
    """A library with its signature beside it."""
    beside = path.with_suffix(".json")
    return begins(b"\x7fELF")(path) or (None if beside.is_file() else f"{beside.name} is not beside it")


FORMATS = (Format("relax", ".so", (".so",), check, executes="a shared library is machine code"),)

RUNNERS = (
    Runner(
        "tvm", "relax", "tvm", ("tvm", "tvm.relax"), {"apache-tvm": "0.25"}, _OPEN, inherits=("tvm-O2",), owner="TVM"
    ),
)

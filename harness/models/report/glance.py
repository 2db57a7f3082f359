"""A given model at a glance: its format, size, operators, parameters and graph, which a confined worker reads."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from harness.conversions.admit import files_of, size_of
from harness.conversions.model_file import why_not
from harness.execute.isolation.confinement import Confinement
from harness.execute.pool import HarnessError, Job, Pool
from harness.models.results import Results
from harness.models.variants import ModelFile
from oracles.judge.outcome import Value

_ONNX = """

def load(parameters):
    import json

    import onnx

    def run():
        told = described(onnx.load(PATH, load_external_data=False))
        return [np.frombuffer(json.dumps(told).encode(), np.uint8)]

    return run
"""
_TFLITE = """

def load(parameters):
    import json

    from ai_edge_litert.interpreter import Interpreter

    def run():
        return [np.frombuffer(json.dumps(described(Interpreter(model_path=PATH))).encode(), np.uint8)]

    return run
"""
_PROGRAMS = {
    "onnx": ("onnx_graph", _ONNX, ("onnx",)),
    "tflite": ("tflite_graph", _TFLITE, ("ai_edge_litert.interpreter",)),
}
"""By format: the helper that reads a file of it, its program, and what its worker imports first."""


@dataclass(frozen=True)
class Node:
    """One operator. inputs, outputs: names of values, constants apart."""

    name: str
    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class Glance:
    """bytes: of the given file, with what it names; source: the file that the rest was read from, in words (empty: it
    is the given one); opsets: versions by domain; parameters: numbers in its constants (None: not known); operators:
    how many of each kind, the most first; dims: of inputs and outputs, a name for one that varies; why: the rest is not
    known (empty: it is)."""

    format: str
    bytes: int
    source: str = ""
    opsets: Mapping[str, int] = field(default_factory=dict)
    producer: str = ""
    parameters: int | None = None
    operators: tuple[tuple[str, int], ...] = ()
    dims: Mapping[str, Sequence[str | int | None]] = field(default_factory=dict)
    nodes: tuple[Node, ...] = ()
    why: str = ""

    @property
    def count(self) -> int:
        """Of all operators."""
        return sum(number for _, number in self.operators)

    @property
    def symbols(self) -> list[str]:
        """Names of dimensions that vary."""
        return sorted({dim for dims in self.dims.values() for dim in dims if isinstance(dim, str)})

    @property
    def size(self) -> str:
        """In words."""
        size, unit = float(self.bytes), "bytes"
        for larger in ("kB", "MB", "GB"):
            if size < 1000:
                break
            size, unit = size / 1000, larger
        return f"{size:.3g} {unit}" if unit != "bytes" else f"{self.bytes} bytes"


def glance_of(results: Results, trust: bool = False) -> Glance:
    """Of the given file, or, where that cannot be read, of the ONNX file that the fewest conversions made of it."""
    given = results.model
    size = sum(map(size_of, files_of(given.path)))
    files = {row.variant.file for row in results.rows if row.variant.file.format == "onnx"}
    made = sorted(files, key=lambda file: (len(file.edges), str(file.path)))
    file = given if given.format in _PROGRAMS else next(iter(made), None)
    if file is None:
        return Glance(
            given.format, size, why=f"what a {given.format} file consists of is read from its ONNX conversion"
        )
    told, why = _read(file, trust)
    if told is None:
        return Glance(given.format, size, why=why)
    return Glance(
        given.format,
        size,
        "" if file.path == given.path else file.told,
        told["opsets"],
        told["producer"],
        told["parameters"],
        tuple(sorted(told["operators"].items(), key=lambda pair: (-pair[1], pair[0]))),
        told["dims"],
        tuple(Node(name, op, tuple(inputs), tuple(outputs)) for name, op, inputs, outputs in told["nodes"]),
    )


def _read(file: ModelFile, trust: bool) -> tuple[dict | None, str]:
    """What its helper says of a file, or why it says nothing."""
    helper, text, modules = _PROGRAMS[file.format]
    reader = (Path(__file__).parents[1] / "helpers" / f"{helper}.py").read_text(encoding="utf-8")
    program = (
        f"import numpy as np\n\n{reader}\n\nPATH = {str(file.path.resolve())!r}\nINPUTS, PARAMETERS = [], []\n{text}"
    )
    job = Job(f"glance-{file.format}", modules, program, {}, reads=(file.path,))
    try:
        with Pool(confined=None if trust else Confinement(files_of(file.path), ())) as pool:
            (outcome,) = pool.run([job], confirm=False)
    except HarnessError as error:
        return None, str(error).splitlines()[0]
    if not isinstance(outcome, Value):
        return None, why_not(outcome)
    return json.loads(np.asarray(outcome.outputs[0]).tobytes().decode()), ""

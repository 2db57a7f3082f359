"""Each variant that deviates as a program of its own: the very text that ran, what made its file, its inputs and a
check of its outputs; and, where values keep their names (ONNX), the layer to blame as a model of its own, with one,
too."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from generators.bounds.bounded import Bounded
from generators.graph import TensorType
from harness.backends.target.target import types_listed
from harness.backends.target.text import swapped
from harness.conversions.edges import EDGES
from harness.conversions.formats import FORMATS
from harness.conversions.model_file import Signature, program
from harness.execute.pool import Job, Pool
from harness.findings import reproducer
from harness.models.given.inputs import Sets
from harness.models.layer_errors import LayerCase, LayerErrors
from harness.models.measure import Run, job_of
from harness.models.results import Results
from harness.models.rows import Row
from harness.models.variants import ModelFile, Variant
from harness.questions.question import Reproduction
from oracles.judge.compare import Expected
from oracles.judge.outcome import Value

CULPRIT = "culprit"
_IMPORT = "from pathlib import Path\n\n"

_MADE = """

# ---- what made its file, where that is not there ----

{steps}

FILES = {files}


def made():
    for convert, source, target in zip([{names}], FILES, FILES[1:]):
        if not Path(target).exists():
            Path(target).parent.mkdir(parents=True, exist_ok=True)
            convert(source, target)
"""

_UNTIMED = """

timed = load


def load(parameters):
    made()
    run = timed(parameters)
    return lambda *inputs: run(*inputs)[1:]  # without the time that it took
"""

_EXTRACT = """
import json

import numpy as np
import onnx
from onnx import helper


def names_in(node):
    found = set(node.input)
    for attribute in node.attribute:  # graphs inside take values from outside
        for graph in (attribute.g, *attribute.graphs):
            for inner in graph.node:
                found |= names_in(inner)
    return found - {""}


def value_of(name, array):
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


def load(parameters):
    def run(*arrays):
        model = onnx.load(PATH)
        shown, needed, nodes = dict(zip(INPUTS, arrays)), {OUTPUT}, []
        for node in reversed(model.graph.node):
            if needed.intersection(node.output):
                nodes.insert(0, node)
                needed |= {name for name in names_in(node) if name not in STOP}
        taken = {name for node in nodes for name in names_in(node)}
        kept = [tensor for tensor in model.graph.initializer if tensor.name in taken]
        given = [name for name in shown if name in taken and name not in {tensor.name for tensor in kept}]
        inputs = [value_of(name, shown[name]) for name in given]
        output = value_of(OUTPUT, shown[OUTPUT])
        graph = helper.make_graph(nodes, "culprit", inputs, [output], kept)
        small = helper.make_model(
            graph, opset_imports=model.opset_import, ir_version=model.ir_version, functions=model.functions
        )
        onnx.save(small, TARGET)
        return [np.frombuffer(json.dumps([given, [node.op_type for node in nodes]]).encode(), np.uint8)]

    return run
"""


def write(folder: Path, place: Path, results: Results, run: Run, row: Row, sets: Sets, trust: bool = False) -> Path:
    """Write `reproducer.py` of a variant that deviates into the folder `place`; returns its path. folder: where all
    results of the model are. Raises OSError."""
    ports, variant = Signature(results.inputs, results.outputs), run.variant
    arrays = run.given(sets, row.place)
    job = job_of(variant, ports, arrays, 0, trust)
    up = f"Path(__file__).resolve().parents[{len(place.relative_to(folder).parts)}]"
    text = swapped(
        job.program, (f"PATH = {str(variant.file.path.resolve())!r}\n", f"PATH = {_path(variant, folder, up)}\n")
    )
    expected = results.expected[row.place] if results.expected else Expected((), (), ())
    text = f"{_IMPORT}{text}{_made(variant, results.model, folder, up)}{_UNTIMED}{_types(job, expected)}"
    versions = ", ".join(f"{name} {version}" for name, version in results.versions.items())
    place.mkdir(parents=True, exist_ok=True)
    shown = Reproduction(text, job.modules, job.arrays, expected, versions, not results.expected)
    return reproducer.write(place, shown, row.symptom, f"{variant.name}: {row.message}", 300.0)


def _path(variant: Variant, folder: Path, up: str) -> str:
    """The expression of where its file is: beside the results, if it was made for them."""
    path, root = variant.file.path.resolve(), folder.resolve()
    return f"str({up} / {str(path.relative_to(root))!r})" if path.is_relative_to(root) else repr(str(path))


def _made(variant: Variant, given: ModelFile, folder: Path, up: str) -> str:
    """The text of `made()`."""
    edges = [EDGES[name] for name in variant.file.edges]
    if any(edge.environment for edge in edges):
        return "\n\ndef made():\n    pass  # its file was made in another environment\n"
    files = [given.path.resolve()]
    for count, edge in enumerate(edges, 1):
        stem = "--".join(variant.file.edges[:count])
        files.append(variant.file.path.resolve().with_name(stem + FORMATS[edge.target].suffix))
    steps = [swapped(e.convert, ("def convert(", f"def convert_{i}(")).strip("\n") for i, e in enumerate(edges, 1)]
    listed = [_path(Variant(ModelFile(path, ""), variant.runner), folder, up) for path in files]
    names = ", ".join(f"convert_{i}" for i in range(1, len(edges) + 1))
    return _MADE.format(steps="\n\n\n".join(steps), files=f"[{', '.join(listed)}]", names=names)


def _types(job: Job, expected: Expected) -> str:
    """What the check of a reproducer reads."""
    given = {name: (str(array.dtype), array.shape) for name, array in job.arrays.items()}
    return f"\n\nINPUTS, PARAMETERS = {given!r}, {{}}\nOUTPUTS = {types_listed(expected.types)}\n"


def write_culprit(
    pool: Pool, place: Path, variant: Variant, layers: LayerErrors, arrays: Sequence[np.ndarray], results: Results
) -> str:
    """Write `culprit.onnx`, the nodes of a variant's file that make the value where its error begins of what they were
    given, and their `reproducer.py`, into a folder; what came of it, in one line. Raises OSError."""
    case = layers.case
    if case is None:
        return ""
    place.mkdir(parents=True, exist_ok=True)
    path = place / f"{CULPRIT}.onnx"
    names = [port.name for port in results.inputs]
    shown = {**dict(zip(names, arrays, strict=True)), **case.inputs, case.output: case.got}
    settings = (
        f"PATH, TARGET = {str(variant.file.path.resolve())!r}, {str(path.resolve())!r}\nOUTPUT = {case.output!r}\n"
        f"STOP = {sorted(case.inputs)!r}\nINPUTS, PARAMETERS = {list(shown)!r}, []\n"
    )
    (outcome,) = pool.run([Job("onnx", ("onnx",), settings + _EXTRACT, shown)], confirm=False)
    if not isinstance(outcome, Value):
        return "the layer to blame cannot be taken out of its model"
    given, operators = json.loads(np.asarray(outcome.outputs[0]).tobytes().decode())
    return _culprit_program(pool, place, path, variant, case, {name: shown[name] for name in given}, operators, results)


def _culprit_program(
    pool: Pool,
    place: Path,
    path: Path,
    variant: Variant,
    case: LayerCase,
    arrays: dict[str, np.ndarray],
    operators: list[str],
    results: Results,
) -> str:
    runner, dtype = variant.runner, str(case.got.dtype)
    text = program(runner, path, list(arrays))
    job = Job(runner.framework, runner.modules, text, arrays)
    (outcome,) = pool.run([job], confirm=False)
    bound = Bounded(case.right.astype(np.float64), case.allowed, dtype)
    expected = Expected((case.output,), (TensorType(dtype, case.right.shape),), (bound,))
    beside = f'str(Path(__file__).with_name("{path.name}"))'
    text = swapped(text, (f"PATH = {str(path.resolve())!r}\n", f"PATH = {beside}\n"))
    text = f"{_IMPORT}{text}{_types(job, expected)}"
    versions = ", ".join(f"{name} {version}" for name, version in results.versions.items())
    title = f"{' and '.join(operators)} of {variant.name}, alone"
    reproducer.write(place, Reproduction(text, runner.modules, arrays, expected, versions), "value", title, 300.0)
    if not isinstance(outcome, Value):
        return f"{path}: alone it returns nothing"
    apart = np.abs(outcome.outputs[0].astype(np.float64) - case.right)
    with np.errstate(all="ignore"):
        ratio = float(np.max(np.where(apart == 0, 0.0, apart / case.allowed), initial=0.0))
    nodes = f"{len(operators)} node{'s' if len(operators) > 1 else ''}"
    return f"{path}: {nodes}; alone it errs by {ratio:.2g} times what is allowed"

"""What a given model returns if it is evaluated correctly: its value in float64 and the measured noise of its dtypes.

The noise is that of the model as ONNX, node by node. Where the framework that the model is from can evaluate it in
float64 itself (Keras, PyTorch), that is the value, so that a converter to ONNX that is wrong does not make the
reference wrong; how far the two are apart is told."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from harness.conversions.model_file import Port, why_not
from harness.conversions.route import ORDERED
from harness.execute.pool import Job, Pool
from harness.models.given.decoding import Course
from harness.models.given.inputs import Sets
from harness.models.measure import CONTAINERS
from oracles import onnx as evaluation
from oracles.judge.compare import Expected, dtype_of
from oracles.judge.outcome import Outcome, Value
from oracles.models import noise

SOURCES = Path(evaluation.__file__).absolute().parent
"""What a confined worker has to be allowed to read, since its programs import `oracles.onnx`. Reproducers do not: they
run where there is no Dissent."""

_IMPORTS = """import sys
import types

for package, folders in (("oracles", []), ("oracles.onnx", [{folder!r}])):  # the folders above are not to be read
    sys.modules[package] = types.ModuleType(package)
    sys.modules[package].__path__ = folders
# the sources that it runs: {digest}

"""
_MONTE_CARLO = """

import json

import onnx
from oracles.onnx.evaluate import LOST
from oracles.onnx.lost import beside
from oracles.onnx.model import read
from oracles.onnx.noise import noisy_runs


def load(parameters):
    graph = read(onnx.load(PATH))

    def run(*inputs):
        own = {graph.inputs[place]: inputs[COUNT + number] for number, place in enumerate(NOISY)}
        exact, *noisy = noisy_runs(graph, inputs[:COUNT], RUNS, SEED, own)
        given = names = list(graph.outputs)
        if len(RETURNED) == len(names):
            given, names = ordered([(name, None, None) for name in names], RETURNED), RETURNED
        told = []
        for name in names:
            place = given.index(name)
            others = [[] if one[place] is LOST else one[place] for one in noisy]
            told += spread_noisy(name, exact[place], others, beside)
        names = np.frombuffer(json.dumps([name for name, _, _ in told]).encode(), np.uint8)
        return [names, *(array for _, *pair in told for array in pair)]

    return run
"""

_EMPTY = """

import numpy as np
import onnx
from oracles.onnx.evaluate import EvaluationError
from oracles.onnx.evaluate import run as evaluate
from oracles.onnx.model import read
from oracles.onnx.rule import NoRule

WINDOWS = ("AveragePool", "Conv", "ConvTranspose", "LpPool", "MaxPool")


def load(parameters):
    graph = read(onnx.load(PATH))

    def run(*inputs):
        found = []

        def look(step):
            if step.node.operator in WINDOWS and not step.results[0][0].size:
                found.append(step.node.title)

        if all(x.size for x in inputs):
            try:
                evaluate(graph, inputs, 1, look)
            except (EvaluationError, NoRule):  # which is told where the reference is derived
                pass
        return [np.frombuffer("".join(found[:1]).encode(), np.uint8)]

    return run
"""
_KERAS = """
import json
import keras


def load(parameters):
    model = keras.saving.load_model(PATH, compile=False, safe_mode=not TRUST)
    text = json.dumps(keras.saving.serialize_keras_object(model))
    for narrow in ("float32", "float16", "bfloat16", "mixed_float16", "mixed_bfloat16"):
        text = text.replace(f'"{narrow}"', '"float64"')
    keras.config.set_floatx("float64")
    wide = keras.saving.deserialize_keras_object(json.loads(text), safe_mode=not TRUST)
    wide.set_weights(model.get_weights())

    def run(*inputs):
        given = [x.astype(np.float64) if x.dtype.kind == "f" else x for x in inputs]
        struct = getattr(wide, "_inputs_struct", given)
        returned = wide(keras.tree.pack_sequence_as(struct, given), training=False)
        return [keras.ops.convert_to_numpy(output) for output in keras.tree.flatten(returned)]

    return run
"""

_TORCH = """
import os

import torch


def widened(value):
    if isinstance(value, torch.dtype):
        return torch.float64 if value in (torch.float32, torch.float16, torch.bfloat16) else value
    return value


def load(parameters):
    os.environ["TORCH_FORCE_WEIGHTS_ONLY_LOAD"] = str(int(not TRUST))
    program = torch.export.load(PATH)
    module = program.module(check_guards=False).double()
    for node in module.graph.nodes:
        node.args, node.kwargs = torch.fx.node.map_aggregate((node.args, node.kwargs), widened)
    module.recompile()

    def run(*inputs):
        tensors = [torch.from_numpy(x.astype(np.float64) if x.dtype.kind == "f" else x) for x in inputs]
        given = torch.utils._pytree.tree_unflatten(tensors, program.call_spec.in_spec)
        with torch.no_grad():
            returned = module(*given[0], **given[1])
        return [output.numpy() for output in torch.utils._pytree.tree_leaves(returned)]

    return run
"""

_WIDE = {"keras": (_KERAS, ("tensorflow", "keras")), "pt2": (_TORCH, ("torch",))}
"""By format: the text of a program that evaluates a model of it in float64, and what its worker imports first."""


ANOTHER = "it is another function"


@dataclass(frozen=True)
class Reference:
    """expected: what a correct run returns, for each set of inputs (None: nothing is derived); how: what it is, in one
    sentence; doubt: what speaks against it (empty: nothing); own: is the value that of the model's own framework?
    through: the conversions that made the ONNX model, where the value is its."""

    expected: tuple[Expected, ...] | None
    how: str
    doubt: str = ""
    own: bool = False
    through: tuple[str, ...] = ()

    @property
    def sound(self) -> bool:
        """Is there one, and its ONNX model not another function than the given model?"""
        return self.expected is not None and ANOTHER not in self.doubt


@cache
def preamble() -> str:
    """The text that makes `from oracles.onnx...` work in a program; it changes when the code that is imported does."""
    files = sorted(SOURCES.rglob("*.py"))
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
    return _IMPORTS.format(folder=str(SOURCES), digest=digest)


def monte_carlo_program(
    path: Path, inputs: Sequence[str], seed: int, outputs: Sequence[Port] = (), noisy: Sequence[int] = ()
) -> str:
    """The text that evaluates an ONNX file in float64, exactly and with noise. outputs: of the model that the file was
    made of, in whose order they are returned (none: in the file's); noisy: places of inputs that come with noise, of
    which the last arrays are the runs."""
    settings = f"{ORDERED}\n\nPATH = {str(path.resolve())!r}\nRUNS = {noise.RUNS}\nSEED = {seed}\n"
    settings += f"RETURNED = {[port.name for port in outputs]!r}\nCOUNT, NOISY = {len(inputs)}, {list(noisy)!r}\n"
    given = [*inputs, *(f"{inputs[place]}_noisy" for place in noisy)]
    return f"{preamble()}{CONTAINERS}\n\n{settings}INPUTS = {given!r}\nPARAMETERS = []\n{_MONTE_CARLO}"


def emptied(pool: Pool, path: Path, arrays: Sequence[np.ndarray]) -> str:
    """The first convolution or pool of an ONNX file that is left without elements by inputs that have some: they are
    smaller than the network is made for, and runners round sizes up or down there as they like. Empty: there is none,
    or it cannot be told."""
    names = [f"x{place}" for place in range(len(arrays))]
    text = f"{preamble()}PATH = {str(path.resolve())!r}\nINPUTS = {names!r}\nPARAMETERS = []\n{_EMPTY}"
    job = Job("reference", ("onnx",), text, dict(zip(names, arrays, strict=True)), reads=(path,))
    (found,) = pool.run([job], confirm=False)
    return bytes(found.outputs[0]).decode() if isinstance(found, Value) else ""


def derive(
    pool: Pool,
    source: tuple[Path, str],
    onnx: tuple[Path, str] | None,
    outputs: Sequence[Port],
    sets: Sets,
    seed: int,
    trust: bool = False,
    course: Course | None = None,
) -> Reference:
    """source: the given file and the name of its format; onnx: the same model as ONNX, and how it became that; outputs:
    of the model; sets: what it is run on; course: of those that follow from others, by their exact and noisy values. A
    reference that cannot be had is no reference, with the reason."""
    if onnx is None:
        return Reference(None, "no reference: the model cannot be had as ONNX; only agreement between variants")
    file, story = onnx
    names = [f"x{place}" for place in range(len(sets[0]))]
    found: list[Outcome] = []
    for number, arrays in enumerate(sets):
        before = course.before(number) if course else None
        last = None if before is None else found[before]
        given, noisy = dict(zip(names, arrays, strict=True)), {}
        if course and isinstance(last, Value) and len(last.outputs) == 1 + 2 * len(outputs):
            pairs = [(place, last.outputs[1 + 2 * output : 3 + 2 * output]) for place, output in course.cache.pairs]
            given |= {names[place]: exact for place, (exact, _) in pairs}
            noisy = {place: runs for place, (_, runs) in pairs}
        text = monte_carlo_program(file, names, seed + number, outputs, list(noisy))
        given |= {f"{names[place]}_noisy": runs for place, runs in noisy.items()}
        found += pool.run([Job("reference", ("onnx",), text, given, reads=(file,))], confirm=False)
        if not isinstance(found[-1], Value):
            break
    pool.restart_worker("reference")
    missing = next((one for one in found if not isinstance(one, Value)), None)
    if missing is not None:
        return Reference(None, f"no reference: {story} does not evaluate in float64: {why_not(missing)}")
    runs = [one.outputs[1:] for one in found if isinstance(one, Value)]
    names_ = [json.loads(one.outputs[0].tobytes()) for one in found if isinstance(one, Value)]
    containers = any("(" in (port.dtype or "") for port in outputs)
    if containers and len({tuple(one) for one in names_}) == 1:
        outputs = [Port(name, None, None) for name in names_[0]]
    if not outputs or any(len(run) // 2 != len(outputs) for run in runs):
        return Reference(None, f"no reference: {story} has {len(runs[0]) // 2} outputs, the model {len(outputs)}")
    exact, noisy = [run[0::2] for run in runs], [run[1::2] for run in runs]
    dtypes = [_dtype(port, y) for port, y in zip(outputs, exact[0], strict=True)]
    titles = [port.name for port in outputs]

    def expected(values: Sequence[Sequence[np.ndarray]]) -> tuple[Expected, ...]:
        """With these values and the noise around the ONNX model's own."""
        return tuple(
            noise.expect(titles, dtypes, value, [_around(*one) for one in zip(value, e, n, strict=True)])
            for value, e, n in zip(values, exact, noisy, strict=True)
        )

    how = f"float64 evaluation of {story}, node by node; noise of {noise.RUNS} runs"
    mine = _own(pool, source, names, sets, trust, course)
    if mine is None:
        doubt = "" if source[1] == "onnx" else f"{story} is taken to be the model: if it is not, others look wrong"
        return Reference(expected(exact), how, doubt)
    if isinstance(mine, str):
        return Reference(expected(exact), how, f"not confirmed by the model's own framework in float64: {mine}")
    wide = [[y.astype(np.float64) if y.dtype.kind == "f" else y for y in run] for run in mine]
    if any([y.shape for y in run] != [e.shape for e in e_run] for run, e_run in zip(wide, exact, strict=True)):
        return Reference(expected(exact), how, "its shapes differ from those of the model's own framework in float64")
    bounds = expected(exact)
    ratio = max(_apart(run, bound) for run, bound in zip(wide, bounds, strict=True))
    how = f"float64 evaluation by the model's own framework; noise of {noise.RUNS} runs of {story}, node by node"
    apart = f"{story}, in float64, is {ratio:.2g} of what is allowed away from it"  # converters round what they fold
    return Reference(expected(wide), f"{how}; {apart}", f"{apart}: {ANOTHER}" if ratio > 1 else "", own=True)


def _dtype(port: Port, y: np.ndarray) -> str:
    """Of an output; of one of which the model does not say it, that of its value, which is wide if it is floating."""
    if port.dtype and y.dtype.kind != "U":
        return port.dtype
    return {"f": "float32", "c": "complex64"}.get(y.dtype.kind, dtype_of(y))


def _around(value: np.ndarray, exact: np.ndarray, noisy: np.ndarray) -> np.ndarray:
    """The noise of one evaluation put around the value of another."""
    return value + (noisy - exact) if value.dtype.kind == "f" else noisy


def _own(
    pool: Pool, source: tuple[Path, str], names: Sequence[str], sets: Sets, trust: bool, course: Course | None
) -> list[tuple[np.ndarray, ...]] | str | None:
    """What the framework that a model is from returns in float64 for each set; why it returns nothing; None where it
    has no such way."""
    path, format_ = source
    if format_ not in _WIDE:
        return None
    text, modules = _WIDE[format_]
    settings = f"import numpy as np\n\nPATH = {str(path.resolve())!r}\nTRUST = {trust!r}\n"
    program = f"{settings}INPUTS = {list(names)!r}\nPARAMETERS = []\n{text}"
    found: list[tuple[np.ndarray, ...]] = []
    for number, arrays in enumerate(sets):
        before = course.before(number) if course else None
        given = arrays if course is None or before is None else course.cache.fed(arrays, found[before])
        job = Job("float64", modules, program, dict(zip(names, given, strict=True)), reads=(path,))
        (one,) = pool.run([job], confirm=False)
        if not isinstance(one, Value):
            pool.restart_worker("float64")
            return why_not(one)
        found.append(one.outputs)
    pool.restart_worker("float64")
    return found


def _apart(given: Sequence[np.ndarray], expected: Expected) -> float:
    """The greatest distance as a part of what is allowed."""
    parts = [0.0]
    for y, bound in zip(given, expected.values, strict=True):
        if not bound.floating:
            parts.append(float("inf") if (bound.error == 0)[y != bound.value].any() else 0.0)
            continue
        with np.errstate(all="ignore"):
            distance = np.abs(y - bound.value)
            same = (y == bound.value) | (np.isnan(y) & np.isnan(bound.value)) | np.isinf(bound.error)
            ratio = np.where(same, 0.0, distance / bound.error)
        parts.append(float(np.max(np.nan_to_num(ratio, nan=np.inf), initial=0.0)))
    return max(parts)

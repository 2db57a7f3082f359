"""What a model takes, as its file says: rows of tables that inputs are indices of, names of dimensions, sizes; and, by
trying them, sizes of what it leaves open."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from textwrap import shorten
from typing import Any

import numpy as np

from harness.conversions.model_file import Port
from harness.execute.pool import Job, Pool
from harness.models.given.inputs import OTHER, Sets, drawn, shape_of
from harness.models.variants import ModelFile
from oracles.judge.outcome import Outcome, Rejected, Value

SIZES = (64, 128, 224, 320, 640, 1, 16, 8, 48, 96, 256, 416, 512, 1024, 4096, 16000)
"""What dimensions that vary are set to, one after the other, where OTHER is refused."""
MOST = 1 << 24
"""Elements of an input that is tried."""
SMALL = (2, 1)
"""Whole numbers are drawn below these where greater ones are refused."""
MASK = 2
"""An input of whole numbers that is called a mask has so many values."""

_ONNX = """

def load(parameters):
    import json

    import onnx

    def run():
        told = taken(onnx.load(PATH, load_external_data=False))
        return [np.frombuffer(json.dumps(told).encode(), np.uint8)]

    return run
"""
_TFLITE = """

def load(parameters):
    import json

    from ai_edge_litert.interpreter import Interpreter

    def run():
        return [np.frombuffer(json.dumps(taken(Interpreter(model_path=PATH))).encode(), np.uint8)]

    return run
"""
_PROGRAMS = {
    "onnx": ("onnx_inputs", _ONNX, "reference", ("onnx",)),
    "tflite": ("tflite_inputs", _TFLITE, "litert", ("ai_edge_litert.interpreter",)),
}
"""By format: the helper that reads a file of it, its program, its worker, and what that imports first."""


@dataclass(frozen=True)
class Takes:
    """rows: of the table that an input is an index of, by its name; dims: names of the dimensions of inputs, empty
    where they have none; words: of the vocabularies of inputs; sizes: that its metadata name."""

    rows: Mapping[str, int] = field(default_factory=dict)
    dims: Mapping[str, Sequence[str]] = field(default_factory=dict)
    words: Mapping[str, Sequence[str]] = field(default_factory=dict)
    sizes: Sequence[int] = ()


@dataclass(frozen=True)
class Drawn:
    """told: what was found out, in one line (empty: nothing); tried: sizes that were refused."""

    told: str = ""
    tried: tuple[int, ...] = ()


def takes_of(pool: Pool, file: ModelFile) -> Takes:
    """What a file says; nothing where it says nothing, or cannot be read for it."""
    if file.format == "keras":
        return Takes(_keras(file.path))
    if file.format not in _PROGRAMS:
        return Takes()
    helper, text, worker, modules = _PROGRAMS[file.format]
    reader = (Path(__file__).parents[1] / "helpers" / f"{helper}.py").read_text(encoding="utf-8")
    program = (
        f"import numpy as np\n\n{reader}\n\nPATH = {str(file.path.resolve())!r}\nINPUTS, PARAMETERS = [], []\n{text}"
    )
    (outcome,) = pool.run([Job(worker, modules, program, {}, reads=(file.path,))], confirm=False)
    if not isinstance(outcome, Value):
        return Takes()
    told = json.loads(np.asarray(outcome.outputs[0]).tobytes().decode())
    return Takes(told["rows"], told.get("dims", {}), told.get("words", {}), told.get("sizes", ()))


def _keras(path: Path) -> dict[str, int]:
    """Rows of the embeddings that inputs go into."""
    with zipfile.ZipFile(path) as archive:
        config = json.loads(archive.read("config.json"))
    layers = config.get("config", {}).get("layers", []) if isinstance(config, dict) else []
    rows: dict[str, int] = {}
    before = ""
    for layer in layers:
        settings = layer.get("config", {})
        size = settings.get("input_dim")
        if layer.get("class_name") == "Embedding" and isinstance(size, int) and size > 0:
            sources = _sources(layer.get("inbound_nodes", [])) or [before]
            rows |= {source: min(size, rows.get(source, size)) for source in sources}
        before = settings.get("name", "")
    return rows


def _sources(nodes: Any) -> list[str]:
    """Names of the layers that a layer takes values from."""
    if isinstance(nodes, dict):
        history = nodes.get("keras_history")
        found = [str(history[0])] if history else []
        return found + [name for value in nodes.values() for name in _sources(value)]
    return [name for value in nodes for name in _sources(value)] if isinstance(nodes, list) else []


def tops_of(ports: Sequence[Port], takes: Takes) -> dict[str, int]:
    """Below what the values of inputs are, where that is known."""
    masks = {
        port.name: MASK for port in ports if "mask" in port.name.lower() and (port.dtype or "")[:3] in ("int", "uin")
    }
    return masks | dict(takes.rows)


def shapes_for(
    ports: Sequence[Port], takes: Takes, shapes: Mapping[str, Sequence[int]], size: int, first: int = 1
) -> dict[str, tuple[int, ...]]:
    """Shapes of all inputs, those that are given among them: dimensions of one name have one size, one that is named
    as a sum that of its terms. size: of those that vary; first: of the first ones."""
    sizes: dict[str, int] = {}
    for port in ports:
        names = takes.dims.get(port.name, ())
        if port.name in shapes and len(names) == len(shapes[port.name]):
            sizes |= {name: d for name, d in zip(names, shapes[port.name], strict=True) if name}
    for port in ports:
        names = takes.dims.get(port.name, ())
        if names and names[0]:
            sizes.setdefault(names[0], first)
    found = {name: tuple(shape) for name, shape in shapes.items()}
    for port in ports:
        if port.name in shapes or port.shape is None:
            continue
        names = takes.dims.get(port.name, ())
        names = names if len(names) == len(port.shape) else [""] * len(port.shape)
        usual = [first if place == 0 else size for place in range(len(names))]
        found[port.name] = tuple(
            _size(name, sizes, other) if d is None else d
            for d, name, other in zip(port.shape, names, usual, strict=True)
        )
    return found


def _size(name: str, sizes: Mapping[str, int], usual: int) -> int:
    terms = re.split(r"\s*\+\s*", name)
    if len(terms) > 1:
        return sum(int(term) if term.isdecimal() else sizes.get(term, usual) for term in terms)
    return sizes.get(name, usual)


def draw(
    ports: Sequence[Port],
    takes: Takes,
    seed: int,
    sets: int,
    shapes: Mapping[str, Sequence[int]],
    span: tuple[float, float] | None,
    call: Callable[[Sequence[np.ndarray]], Outcome],
) -> tuple[Sets, Drawn]:
    """Inputs that the model takes, if some are found; else the usual ones. call: what comes of them. Raises
    FormatError."""
    tops = tops_of(ports, takes)
    shapes_now = shapes_for(ports, takes, shapes, OTHER)
    usual = drawn(ports, seed, sets, shapes_now, span, tops, takes.words)
    known = [f"{port.name} is drawn below {tops[port.name]}" for port in ports if port.name in tops]
    known += [f"{name} is drawn from {len(words)} words of the file" for name, words in takes.words.items() if words]
    free = [port for port in ports if port.name not in shapes and port.shape and None in port.shape]
    whole = [port for port in ports if span is None and port.name not in tops and _whole(port)]
    if not (free or whole) or not _refused(usual, call):
        return usual, Drawn("; ".join(known))
    for top in SMALL if whole else ():
        low = drawn(ports, seed, sets, shapes_now, span, tops | {port.name: top for port in whole}, takes.words)
        if not _refused(low, call):
            told = [f"{port.name} is drawn below {top}" for port in whole]
            return low, Drawn("; ".join([*known, *told]) + ": greater ones are refused")
    tried = [OTHER]
    for first in (1, 0) if free else ():  # then what comes first is no batch
        for size in dict.fromkeys((*takes.sizes, *SIZES) if first else (*takes.sizes, OTHER, *SIZES)):
            found = shapes_for(ports, takes, shapes, size, first or size)
            if max(prod(shape) for shape in found.values()) > MOST or found == shapes_now:
                continue
            arrays = drawn(ports, seed, sets, found, span, tops, takes.words)
            if not _refused(arrays, call):
                told = [f"{port.name} is drawn as {list(found[port.name])}" for port in free]
                return arrays, Drawn("; ".join([*known, *told]) + f": with sizes of {OTHER} it is refused")
            tried.append(size)
    return usual, Drawn("; ".join(known), tuple(sorted(set(tried))) if free else ())


def _whole(port: Port) -> bool:
    return re.match("u?int", port.dtype or "") is not None


def _refused(sets: Sets, call: Callable[[Sequence[np.ndarray]], Outcome]) -> bool:
    return any(isinstance(call(arrays), Rejected) for arrays in sets)


def inputs_refused(ports: Sequence[Port], why: str, share: tuple[int, int], drawn_: Drawn | None) -> str:
    """One line on inputs that are not what the model takes, with what to give. why: what the first one says; share: so
    many of so many variants refuse them; drawn_: how they were drawn (None: they are given)."""
    those = f"{share[0]} of {share[1]} variants refuse" if share != (1, 1) else "the variant refuses"
    why = shorten(why, 200)
    if drawn_ is None:
        return f"Inputs refused: {those} those that are given. The first says: {why}"
    what = ", ".join(f"{port.name}: {port.dtype}{list(shape_of(port, {}))}" for port in ports if port.shape is not None)
    tried = f"; sizes {', '.join(map(str, drawn_.tried))} were tried" if drawn_.tried else ""
    open_ = next((port for port in ports if port.shape is None or None in port.shape), None)
    shapes = f", or shapes by --input-shapes '{open_.name}:[...]'" if open_ else ""
    values = ", or values by --val-range '[LOW,HIGH]'" if any(map(_whole, ports)) else ""
    return (
        f"Inputs refused: {those} what was drawn ({what}{tried}): give others by --inputs FILE.npz{shapes}{values}. "
        f"The first says: {why}"
    )

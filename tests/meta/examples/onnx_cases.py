"""ONNX models of one node, the cases of onnx's own test suite, and how far a result may be from one in float32."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from oracles.onnx.amplitudes import unit_of
from oracles.onnx.kinds import kind_of, widened
from oracles.onnx.model import read
from oracles.onnx.noise import noisy_runs

RUNS = 8
DEVIATIONS = 3.0
"""Standard deviations of a model's own noise that a correct result in its dtypes may be off by."""


@dataclass(frozen=True)
class BackendCase:
    """A case of onnx's suite. sets: inputs and outputs."""

    name: str
    model: onnx.ModelProto
    sets: tuple[tuple[list[Any], list[Any]], ...]


def one_node(
    operator: str, inputs: Sequence[Any], version: int, outputs: int = 1, domain: str = "", **attributes: Any
) -> onnx.ModelProto:
    """A model of one node; None stands for an absent input."""
    names = ["" if x is None else f"x{place}" for place, x in enumerate(inputs)]
    made = [f"y{place}" for place in range(outputs)]
    node = helper.make_node(operator, names, made, domain=domain, **attributes)
    given = [
        helper.make_tensor_value_info(name, kind_of(x), x.shape) for name, x in zip(names, inputs, strict=True) if name
    ]
    ends = [helper.make_empty_tensor_value_info(name) for name in made]
    graph = helper.make_graph([node], "one", given, ends)
    opsets = [helper.make_opsetid(domain, version)] if domain else [helper.make_opsetid("", version)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8 if version < 22 else 11)


def apart(model: onnx.ModelProto, inputs: Sequence[Any] | Mapping[str, Any], expected: Sequence[Any]) -> str:
    """What is wrong with our float64 value of a model, given results in its own dtypes; "" where nothing is. Floats may
    be off by the model's own noise and two ulps."""
    graph = read(model)
    exact, *noisy = noisy_runs(graph, inputs, RUNS, 1)
    found = [_apart(e, [one[k] for one in noisy], y) for k, (e, y) in enumerate(zip(exact, expected, strict=True))]
    return "; ".join(filter(None, found))


def _apart(exact: Any, noisy: Sequence[Any], expected: Any) -> str:
    if expected is None or isinstance(expected, list):
        if not isinstance(expected, list) or not isinstance(exact, list) or len(expected) != len(exact):
            return "" if exact is None and expected is None else f"{exact!r} is not {expected!r}"
        parts = [_apart(e, [one[k] for one in noisy], y) for k, (e, y) in enumerate(zip(exact, expected, strict=True))]
        return "; ".join(filter(None, parts))
    given = np.asarray(expected)
    right = widened(given)
    if not isinstance(exact, np.ndarray) or (exact.shape, exact.dtype) != (right.shape, right.dtype):
        return f"{getattr(exact, 'shape', exact)} {getattr(exact, 'dtype', '')} is not {right.shape} {right.dtype}"
    if right.dtype.kind not in "fc":
        same = exact == right
        if right.dtype.kind == "V":
            same = same | np.isnan(exact.astype(np.float64)) & np.isnan(right.astype(np.float64))
        return "" if np.all(same) else f"{exact[~same][:3]} is not {right[~same][:3]}"
    with np.errstate(all="ignore"):
        squares = np.mean([np.abs(one - exact) ** 2 for one in noisy], axis=0)
        finite = np.isfinite(squares)
        typical = np.mean(squares[finite]) if finite.any() else 0.0
        floor = unit_of(kind_of(given)) if given.dtype.kind != "c" else 2.0**-24
        tiny = float(ml_dtypes.finfo(given.dtype).tiny)
        allowed = DEVIATIONS * np.sqrt((squares + typical) / 2) + 4 * floor * np.abs(exact) + tiny
        same = (exact == right) | (np.isnan(exact) & np.isnan(right)) | (np.abs(exact - right) <= allowed)
    return "" if same.all() else f"{exact[~same][:3]} is not {right[~same][:3]}, within {allowed[~same][:3]}"


@cache
def backend_cases() -> tuple[BackendCase, ...]:
    """All cases that come with onnx, in the order of their names."""
    from onnx.backend.test.loader import load_model_tests  # it makes all cases of nodes as it is imported

    found = []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # of the computations of expected values
        for kind in ("node", "simple", "pytorch-converted", "pytorch-operator"):
            for case in load_model_tests(kind=kind):
                if case.data_sets is not None and case.model is not None:
                    sets = tuple((_arrays(inputs), _arrays(outputs)) for inputs, outputs in case.data_sets)
                    found.append(BackendCase(case.name, case.model, sets))
                elif case.model_dir:
                    found.append(_stored(case.name, Path(case.model_dir)))
    return tuple(sorted(found, key=lambda case: case.name))


def _arrays(values: Sequence[Any]) -> list[Any]:
    return [numpy_helper.to_array(value) if isinstance(value, TensorProto) else value for value in values]


def _stored(name: str, folder: Path) -> BackendCase:
    """A case in files."""
    model = onnx.load(folder / "model.onnx")
    constants = {tensor.name for tensor in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in constants]
    if len(list(folder.glob("test_data_set_0/input_*.pb"))) == len(model.graph.input):
        inputs = list(model.graph.input)
    sets = []
    for one in sorted(folder.glob("test_data_set_*")):
        given = dict(_values(one, "input", inputs))
        sets.append(
            (
                [given[v.name] for v in inputs if v.name not in constants],
                [y for _, y in _values(one, "output", model.graph.output)],
            )
        )
    return BackendCase(name, model, tuple(sets))


def _values(folder: Path, side: str, ports: Sequence[onnx.ValueInfoProto]) -> Iterator[tuple[str, Any]]:
    for place, port in enumerate(ports):
        text = (folder / f"{side}_{place}.pb").read_bytes()
        which = port.type.WhichOneof("value")
        if which == "sequence_type":
            yield port.name, numpy_helper.to_list(onnx.SequenceProto.FromString(text))
        elif which == "optional_type":
            yield port.name, numpy_helper.to_optional(onnx.OptionalProto.FromString(text))
        else:
            yield port.name, numpy_helper.to_array(TensorProto.FromString(text))

"""The tests that come with onnx, written into a folder by a worker that has it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from generators.schema import converted, parsed
from harness.conversions.model_file import why_not
from harness.execute.pool import HarnessError, Job, Pool
from harness.studies.conformance.values import unpacked
from oracles.judge.outcome import Value

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")
"""Of its tests; those of kind `real` are downloaded, and left out."""
PACKED = Path(__file__).with_name("values.py").read_text(encoding="utf-8")
HELPERS = Path(__file__).parent / "helpers"


@dataclass(frozen=True)
class Test:
    """number: of its files; operator: that it is about (`several` where that is not said); operators: of its nodes;
    opsets: versions by domain; sets: of inputs and outputs; dtypes: of all tensors in these; inputs, outputs: names in
    order."""

    __test__ = False  # no test of pytest's
    number: int
    name: str
    kind: str
    operator: str
    operators: tuple[str, ...]
    opsets: dict[str, int]
    sets: int
    dtypes: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    @property
    def opset(self) -> int:
        """Of the domain of its operator."""
        domain = self.operator.rpartition(":")[0]
        return self.opsets.get(domain, max(self.opsets.values(), default=0))


def helper(name: str) -> str:
    """The text of a part of programs."""
    return (HELPERS / f"{name}.py").read_text(encoding="utf-8")


def collect(pool: Pool, kinds: Sequence[str], folder: Path) -> list[Test]:
    """All tests of these kinds, in files of this folder. Raises HarnessError where onnx has none."""
    settings = f"KINDS = {list(kinds)!r}\nFOLDER = {str(folder)!r}\nINPUTS, PARAMETERS = [], []\n"
    text = f"{PACKED}\n\n{settings}\n{helper('collect')}"
    (outcome,) = pool.run([Job("collect", ("onnx",), text, {}, writes=(folder,))], confirm=False)
    pool.restart_worker("collect")
    if not isinstance(outcome, Value):
        raise HarnessError(f"the tests of onnx cannot be had: {why_not(outcome)}")
    listed = parsed(outcome.outputs[0].tobytes().decode())
    return [converted({"number": number, **one}, Test) for number, one in enumerate(converted(listed, list[dict]))]


def values_of(test: Test, number: int, folder: Path) -> tuple[dict[str, np.ndarray], list[Any]]:
    """A set: inputs as programs take them, and the outputs that are expected."""
    with np.load(folder / f"{test.number}.{number}.npz") as parts:
        header, data, expected, expected_data = (parts[f"arr_{place}"] for place in range(4))
    return {"header": header, "data": data}, unpacked(expected, expected_data)


def told(outputs: Sequence[np.ndarray]) -> list[Any]:
    """The values that a program returned."""
    header, data = outputs
    return unpacked(header, data)

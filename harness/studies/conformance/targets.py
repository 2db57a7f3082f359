"""Who runs the tests: runners of ONNX files, and conversions from ONNX with the usual runner of what they write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from harness.backends import probe
from harness.conversions.edges import EDGES
from harness.conversions.formats import FORMATS, runners_of
from harness.conversions.route import availability
from harness.execute.pool import Job
from harness.studies.conformance.collected import PACKED, Test, helper
from oracles.models import noise

REFERENCE = "reference"
DEFAULT = f"{REFERENCE},ort-all,ort-disable,openvino-onnx/openvino"
"""Those that start fast."""
ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class Tried:
    """name: of a runner, or EDGE/RUNNER; text: of `open_model`, and of `convert` where it converts; suffix: of the file
    that is made (None: nothing is); version: of the tool; reason: why it is not usable here (None: it is); narrows,
    refuses: as in a runner."""

    name: str
    framework: str
    modules: tuple[str, ...]
    text: str
    suffix: str | None = None
    environment: str = ""
    version: str = ""
    reason: str | None = None
    narrows: Mapping[str, str] = field(default_factory=dict)
    refuses: tuple[tuple[str, str], ...] = ()

    def job(self, test: Test, inputs: Mapping, folder: Path) -> Job:
        """One set of a test."""
        path = folder / f"{test.number}.onnx"
        if self.name == REFERENCE:
            settings = f"ROOT = {str(ROOT)!r}\nRUNS = {noise.RUNS}\nSEED = 0\n"
        else:
            settings = f"SUFFIX = {self.suffix!r}\nTRUST = True  # onnx made the file\n"
            settings += f"NAMES = {list(test.inputs)!r}\nOUTPUTS = {list(test.outputs)!r}\n"
        settings += f"PATH = {str(path)!r}\nINPUTS, PARAMETERS = ['header', 'data'], []\n"
        text = f"{PACKED}\n\n{settings}\n{self.text}"
        return Job(self.framework, self.modules, text, inputs, self.environment, foreign=True, reads=(path,))


@cache
def targets() -> dict[str, Tried]:
    """By name, the reference first."""
    versions, reason = probe.installed({"onnx": "1.17"})
    found = [
        Tried(REFERENCE, REFERENCE, ("onnx",), helper("reference"), version=versions.get("onnx") or "", reason=reason)
    ]
    opened = helper("opened")
    for runner in runners_of("onnx", slow=True):
        versions, reason = probe.installed(runner.packages)
        version = next((one for one in versions.values() if one), "")
        parts = (runner.name, runner.framework, runner.modules, f"{runner.open}\n\n{opened}", None, "", version, reason)
        found.append(Tried(*parts, runner.narrows, runner.refuses))
    for edge in EDGES.values():
        usual = runners_of(edge.target, slow=True)
        if edge.source != "onnx" or not usual:
            continue
        runner = usual[0]
        version, reason = availability(edge)
        reason = reason or probe.installed(runner.packages, edge.environment)[1]
        modules = tuple(dict.fromkeys((*edge.modules, *runner.modules)))
        text = f"{edge.convert}\n\n{runner.open}\n\n{opened}"
        parts = (f"{edge.name}/{runner.name}", edge.name, modules, text, FORMATS[edge.target].suffix, edge.environment)
        found.append(Tried(*parts, version or "", reason, runner.narrows, (*edge.refuses, *runner.refuses)))
    return {one.name: one for one in found}

"""The formats of model files and who runs them: one file a format, with tuples `FORMATS` and `RUNNERS`. To add one,
write its file."""

from __future__ import annotations

from generators.discovery import collected
from harness.conversions.formats.format import Format, Runner

_FIRST = ("savedmodel", "tflite", "onnx", "pt2", "openvino", "stablehlo", "keras", "relax", "pickled", "tvm")
FORMATS: dict[str, Format] = collected(__name__, "FORMATS", _FIRST)
RUNNERS: dict[str, Runner] = collected(__name__, "RUNNERS", _FIRST)
"""By name. What is not named in _FIRST comes after it, in alphabetical order of the files."""


def runners_of(format_: str, slow: bool = False) -> list[Runner]:
    """Those that take files of a format, the usual one first. slow: also those that compile for long."""
    return [runner for runner in RUNNERS.values() if runner.format == format_ and (slow or not runner.slow)]


__all__ = ["FORMATS", "RUNNERS", "Format", "Runner", "runners_of"]

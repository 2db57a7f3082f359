"""The formats of model files and who runs them: one file a format. To add one, write its file and name it here."""

from __future__ import annotations

from harness.conversions.formats import keras, onnx, openvino, pickled, pt2, relax, savedmodel, stablehlo, tflite, tvm
from harness.conversions.formats.format import Format, Runner

_MODULES = (savedmodel, tflite, onnx, pt2, openvino, stablehlo, keras, relax, pickled)

FORMATS: dict[str, Format] = {module.FORMAT.name: module.FORMAT for module in _MODULES}
RUNNERS: dict[str, Runner] = {runner.name: runner for module in (*_MODULES, tvm) for runner in module.RUNNERS}


def runners_of(format_: str, slow: bool = False) -> list[Runner]:
    """Those that take files of a format, the usual one first. slow: also those that compile for long."""
    return [runner for runner in RUNNERS.values() if runner.format == format_ and (slow or not runner.slow)]


__all__ = ["FORMATS", "RUNNERS", "Format", "Runner", "runners_of"]

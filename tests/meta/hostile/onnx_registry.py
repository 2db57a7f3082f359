"""The rule by which ONNX's operators are allowed in a model of a stranger, over the installed registries."""

from __future__ import annotations

EXCEPTIONS = {
    "com.microsoft.EPContext": "it loads a library or a compiled binary",
    "com.microsoft.Snpe": "it holds a program of another device",
}


def allowed() -> list[str]:
    """`domain.Name` of the operators of ONNX, and of those that ONNX Runtime has beside them and its optimiser writes.
    Builds of it with Python (PythonOp) or PyTorch inside (ATen) have more, which are not taken."""
    from onnx import defs
    from onnxruntime.capi import onnxruntime_pybind11_state as runtime  # pyright: ignore[reportAttributeAccessIssue]

    schemas = [*defs.get_all_schemas_with_history(), *runtime.get_all_operator_schema()]
    found = {f"{one.domain or 'ai.onnx'}.{one.name}" for one in schemas}
    return sorted(one for one in found - set(EXCEPTIONS) if not one.endswith("_TRT"))

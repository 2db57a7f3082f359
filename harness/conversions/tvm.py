"""TVM's importers, each with the compilation of what it imports."""

from __future__ import annotations

from harness.conversions.edge import Edge
from harness.conversions.formats.pt2 import LOAD
from harness.conversions.formats.tflite import SIGNED

_COMPILE = """
def convert(source, target):
    import json
    from pathlib import Path

    import tvm
    from tvm import relax

    names = []  # of the outputs, where the file has them in another order than its signature
{imported}
    function = module["main"]

    def ports(kind, values):
        return [
            (
                name or f"{{kind}}{{i}}",
                str(type_.dtype),
                [int(dim) if isinstance(dim, tvm.tirx.IntImm) else None for dim in type_.shape or [None] * type_.ndim],
            )
            for i, (name, type_) in enumerate(values)
        ]

    returned = function.ret_ty
    results = list(returned.fields) if hasattr(returned, "fields") else [returned]
    signature = {{
        "inputs": ports("in", [(variable.name, variable.ty) for variable in function.params]),
        "outputs": ports("out", [*zip(names or [""] * len(results), results)]),
    }}
    tvm.compile(module, tvm.target.Target("llvm")).export_library(target)
    Path(target).with_suffix(".json").write_text(json.dumps(signature), encoding="utf-8")
"""

_ONNX = """
    import onnx
    from tvm.relax.frontend.onnx import from_onnx

    module = from_onnx(onnx.load(source), keep_params_in_input=False)
"""

_TORCH = """
    from tvm.relax.frontend.torch import from_exported_program

    module = from_exported_program(exported_program(source), run_ep_decomposition=True)
"""

_TFLITE = """
    import tflite
    from tvm.relax.frontend.tflite import from_tflite

    names = [name for _, name in signed(source)]
    module = from_tflite(tflite.Model.GetRootAsModel(Path(source).read_bytes(), 0))
"""

_PACKAGES = {"apache-tvm": "0.25"}
_SAYS = (
    (r"Unsupported function types (\[.*?\])", "no {}"),
    (r"Tensor type (\d+) is currently not supported", "no tensors of TFLite's type {}"),
    ("TFLite does not support multi-axis yet", "several axes of a reversal"),
    (r"operators are not supported for frontend ONNX: (\w+)", "no {}"),
    (r"(\w+): only support float32 and float16 for now", "no {} of other dtypes than float32 and float16"),
    (r"input_type (torch\.complex\d+) is not handled yet", "no {}"),
)
_TYPES = (r"^KeyError: (\d+)\b", "no inputs of TFLite's type {}")
"""The importer has a table of the dtypes of inputs (`_decode_type`), without float64, for one, which is 10."""

EDGES = tuple(
    Edge(
        f"tvm-{format_}",
        format_,
        "relax",
        ("tvm", "tvm.relax", module),
        {**_PACKAGES, **more},
        before + _COMPILE.format(imported=text.strip("\n")),
        refuses=refuses,
    )
    for format_, module, more, before, text, refuses in (
        ("onnx", "onnx", {"onnx": "1.17"}, "", _ONNX, _SAYS),
        ("pt2", "torch", {"torch": "2.9"}, LOAD + "\n", _TORCH, _SAYS),
        ("tflite", "tflite", {"tflite": "2.18"}, SIGNED + "\n", _TFLITE, (*_SAYS, _TYPES)),
    )
)

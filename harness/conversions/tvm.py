"""TVM's importers, each with the compilation of what it imports."""

from __future__ import annotations

from harness.conversions.edge import Edge

_COMPILE = """
def convert(source, target):
    import json
    from pathlib import Path

    import tvm
    from tvm import relax

{imported}
    function = module["main"]

    def ports(kind, values):
        return [
            (
                name or f"{{kind}}{{i}}",
                str(type_.dtype),
                [int(dim) if isinstance(dim, tvm.tirx.IntImm) else None for dim in type_.shape],
            )
            for i, (name, type_) in enumerate(values)
        ]

    returned = function.ret_ty
    results = list(returned.fields) if hasattr(returned, "fields") else [returned]
    signature = {{
        "inputs": ports("in", [(variable.name, variable.ty) for variable in function.params]),
        "outputs": ports("out", [("", type_) for type_ in results]),
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
    import torch
    from tvm.relax.frontend.torch import from_exported_program

    module = from_exported_program(torch.export.load(source), run_ep_decomposition=True)
"""

_TFLITE = """
    import tflite
    from tvm.relax.frontend.tflite import from_tflite

    module = from_tflite(tflite.Model.GetRootAsModel(Path(source).read_bytes(), 0))
"""

_PACKAGES = {"apache-tvm": "0.25"}

EDGES = tuple(
    Edge(
        f"tvm-{format_}",
        format_,
        "relax",
        ("tvm", "tvm.relax", module),
        {**_PACKAGES, **more},
        _COMPILE.format(imported=text.strip("\n")),
        refuses=((r"Unsupported function types (\[.*?\])", "no {}"),),
    )
    for format_, module, more, text in (
        ("onnx", "onnx", {"onnx": "1.17"}, _ONNX),
        ("pt2", "torch", {"torch": "2.9"}, _TORCH),
        ("tflite", "tflite", {"tflite": "2.18"}, _TFLITE),
    )
)

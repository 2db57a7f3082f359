"""LiteRT Torch (formerly AI Edge Torch), in an environment of its own: from torch.export's archive to TFLite."""

from __future__ import annotations

from harness.conversions.edges.edge import Edge
from harness.conversions.formats.pt2 import LOAD

_CONVERT = (
    LOAD
    + """
def convert(source, target):
    import litert_torch
    import torch

    program = exported_program(source)
    values = {node.name: node.meta["val"] for node in program.graph.nodes if node.op == "placeholder"}
    given = [values[name] for name in program.graph_signature.user_inputs]
    examples = [torch.zeros([d if isinstance(d, int) else 1 for d in one.shape], dtype=one.dtype) for one in given]
    args, kwargs = torch.utils._pytree.tree_unflatten(examples, program.call_spec.in_spec)
    # else 64-bit numbers are made 32-bit ones on purpose
    litert_torch.convert(program.module(), tuple(args), kwargs or None, enable_x64=True).export(target)
"""
)

EDGES = (
    Edge(
        "litert-torch",
        "pt2",
        "tflite",
        ("torch", "litert_torch"),
        {"litert-torch": "0.10", "torch": "2.9"},
        _CONVERT,
        environment="litert-torch",
        refuses=(
            (r"Lowering not found: ([\w.]+)", "no lowering of {}"),
            (
                r"failed to legalize operation '((?:tfl|mhlo)\.\w+)' that was explicitly marked illegal",
                "no {} of this type",
            ),
            (r"^KeyError: torch\.(complex\d+)\b", "no {}"),
        ),
    ),
)

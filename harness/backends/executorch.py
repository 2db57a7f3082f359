"""ExecuTorch in an environment of its own: the exported graph with its portable kernels, and what XNNPACK takes of it
by XNNPACK."""

from __future__ import annotations

from generators.ops.spec import Unsupported
from harness.backends.target.target import Level, Target
from harness.backends.target.text import swapped
from harness.dialects import TORCH

_LOAD = """
def load(parameters):
    from executorch.exir import to_edge_transform_and_lower
    from executorch.runtime import Runtime

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            for name in PARAMETERS:
                self.register_buffer(name, torch.from_numpy(parameters[name]))

        def forward(self, *inputs):
            return model(*inputs, *[getattr(self, name) for name in PARAMETERS])

    examples = tuple(torch.zeros(shape, dtype=getattr(torch, dtype)) for dtype, shape in INPUTS.values())
    exported = torch.export.export(Model(), examples)
    content = to_edge_transform_and_lower(exported, partitioner=[]).to_executorch().buffer
    program = Runtime.get().load_program(content)
    method = program.load_method("forward")

    def run(*inputs, held=(content, program)):  # the method does not own its bytes
        return [output.numpy().copy() for output in method.execute([torch.from_numpy(x) for x in inputs])]

    return run
"""
_PARTITIONER = "    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner\n"
_IMPORT = "    from executorch.exir"
_XNNPACK = swapped(_LOAD, ("partitioner=[]", "partitioner=[XnnpackPartitioner()]"), (_IMPORT, _PARTITIONER + _IMPORT))

TARGETS = tuple(
    Target(
        f"executorch-{name}",
        "executorch",
        ("torch", "executorch.exir", "executorch.runtime"),
        TORCH,
        load,
        {"executorch": "1.4", "torch": "2.9"},
        Level("executorch", level),
        sample_every=8,
        refusals_file="torch",
        declines={"Failed to load method forward, error: 0x:?14": "OperatorMissing: no kernel in its library"},
        gradient=Unsupported("what ExecuTorch runs is for inference"),
        environment="executorch",
        opt_in=True,
        inherits=("torch-export",),
    )
    for level, (name, load) in enumerate({"portable": _LOAD, "xnnpack": _XNNPACK}.items())
)

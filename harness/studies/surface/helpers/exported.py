"""Exported programs of PyTorch, and the map of TVM's importer of them, which takes
them apart first or not."""

import torch


def listed():
    from tvm.relax.frontend.torch.exported_program_translator import ExportedProgramImporter

    return {str(name): [] for name in ExportedProgramImporter().convert_map}


def observe(program, note):
    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            for name, array in plain_numbers(program["PARAMETERS"], 1).items():
                self.register_buffer(name, torch.from_numpy(array))

        def forward(self, *inputs):
            return program["model"](*inputs, *[getattr(self, name) for name in program["PARAMETERS"]])

    examples = tuple(torch.ones(shape, dtype=getattr(torch, dtype)) for dtype, shape in program["INPUTS"].values())
    exported = torch.export.export(Module(), examples)
    for taken in (exported, exported.run_decompositions()):
        for node in taken.graph.nodes:
            if node.op == "call_function":
                note(node.target.__name__, [])

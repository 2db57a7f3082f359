"""torch.export's archive (.pt2)."""

from __future__ import annotations

from pathlib import Path

from harness.backends.target.text import swapped
from harness.conversions.formats.archive import member
from harness.conversions.formats.format import Format, Runner, Writer
from harness.dialects import TORCH

WRITE = """
def write(parameters, path):
    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            for name, array in parameters.items():
                self.register_buffer(name, torch.from_numpy(array))

        def forward(self, *inputs):
            return model(*inputs, *[getattr(self, name) for name in PARAMETERS])

    examples = tuple(torch.zeros(shape, dtype=getattr(torch, dtype)) for dtype, shape in INPUTS.values())
    torch.export.save(torch.export.export(Module(), examples), path)
"""

_SIZES = (
    "tuple({axis: torch.export.Dim.AUTO for axis, size in enumerate(shape) if size > 1} "
    "for _, shape in INPUTS.values())"
)
_OPEN_SIZES = swapped(
    WRITE,
    (
        "    torch.export.save(torch.export.export(Module(), examples), path)",
        f"    sizes = {_SIZES}\n"
        "    opened = (sizes,) if sizes else None\n"
        "    torch.export.save(torch.export.export(Module(), examples, dynamic_shapes=opened), path)",
    ),
)
"""Every size of an input that may vary does, as far as the program lets it."""

LOAD = """
def exported_program(path):
    import os
    import pickle

    import torch
    import torch.ao.quantization.fx._decomposed  # registers the operators of quantised programs

    # torch.export.load unpickles whatever does not load as plain tensors, unless told so
    os.environ["TORCH_FORCE_WEIGHTS_ONLY_LOAD"] = str(int(not TRUST))
    try:
        return torch.export.load(path)
    except pickle.UnpicklingError as error:
        raise ValueError("it holds a pickle of more than tensors, which is opened only where it is trusted") from error
"""
"""Whatever opens such a file opens it by this."""

TRACEABLE = """
def traceable(program):
    import torch

    sizes = {node.name: getattr(node.meta.get("val"), "shape", ()) for node in program.graph.nodes}
    if any(not isinstance(size, int) for name in program.graph_signature.user_inputs for size in sizes.get(name, ())):
        raise NotImplementedError("it traces a model with fixed sizes, and those of this one vary")
    module = program.module().requires_grad_(False)  # a weight that has a gradient is no constant

    class Traced(torch.nn.Module):  # not a submodule: what torch.export returns refuses the mode that is set for all
        def forward(self, *inputs):
            return module(*inputs)

    examples = program.example_inputs[0]  # it runs the model on these: what divides by one of them takes no zeros
    try:
        Traced()(*examples)
    except RuntimeError as error:
        if "ZeroDivisionError" not in str(error):
            raise
        examples = tuple(map(torch.ones_like, examples))
    return Traced(), examples
"""
"""What is traced by TorchScript, and on which inputs."""

_OPEN = (
    LOAD
    + """

def open_model(path):
    import torch

    program = exported_program(path)
    values = {node.name: node.meta.get("val") for node in program.graph.nodes}

    def ports(names):
        tensors = [(name, values.get(name)) for name in names]
        for name, value in tensors:
            if not isinstance(value, torch.Tensor):
                raise TypeError(f"{name} is a {type(value).__name__}, not a tensor")
        return [
            (name, str(value.dtype).removeprefix("torch."), [d if isinstance(d, int) else None for d in value.shape])
            for name, value in tensors
        ]

    inputs, outputs = ports(program.graph_signature.user_inputs), ports(program.graph_signature.user_outputs)
    module = program.module()

    def call(*arrays):
        tensors = [torch.from_numpy(array) for array in arrays]
        given = torch.utils._pytree.tree_unflatten(tensors, program.call_spec.in_spec)
        with torch.no_grad():
            returned = module(*given[0], **given[1])
        return [output.numpy() for output in torch.utils._pytree.tree_leaves(returned)]

    return inputs, outputs, call
"""
)


def check(path: Path) -> str | None:
    """A zip archive with the program as JSON. One of AOTInductor has compiled code in its place."""
    why = member(path, "models/model.json", "serialized_exported_program.json")
    if why and not member(path, ".so"):
        return "it is a package of AOTInductor: compiled code, which is not opened"
    return why


_PACKAGES = {"torch": "2.9"}
UNTRACED = (
    (r"UnsupportedOperatorException: ([\w.]+)", "no meta kernel of {}"),
    (r"DataDependentOutputException: ([\w.]+)", "no {}, whose result depends on values"),
    (r"DynamicOutputShapeException: ([\w.]+)", "no {}, whose sizes depend on values"),
    (r"GuardOnDataDependentSymNode: Could not guard on", "no branch on a value"),
    (r"Unsupported dtype (Half)", "no {}"),
    (r"(linalg\.\w+)\(Half.*expected a tensor with", "no {} of half precision"),
    (r"(linalg[\w.]+): Low precision dtypes not supported", "no {} of half precision"),
)
"""What torch.export documents not to trace (its programming model: data-dependent control flow, meta kernels)."""
FORMATS = (
    Format(
        "pt2", ".pt2", (".pt2",), check,
        writers=(
            Writer(TORCH, WRITE, ("torch",), _PACKAGES, ("torch-export",)),
            Writer(
                TORCH, _OPEN_SIZES, ("torch",), _PACKAGES, ("torch-export",), "torch-open", like="torch",
                on_request=True,
            ),
        ),
        refuses=UNTRACED,
    ),
)  # fmt: skip

RUNNERS = (
    Runner("torch-exported", "pt2", "torch", ("torch",), _PACKAGES, _OPEN, owner="PyTorch"),
    *(
        Runner(
            f"torch-{backend.replace('_', '-')}",
            "pt2",
            "torch",
            ("torch",),
            _PACKAGES,
            swapped(
                _OPEN,
                ("program.module()\n", f'torch.compile(program.module(), backend="{backend}", fullgraph=True)\n'),
            ),
            level=level,
            slow=True,
            owner="PyTorch",
        )
        for level, backend in ((1, "aot_eager"), (2, "inductor"))
    ),
)

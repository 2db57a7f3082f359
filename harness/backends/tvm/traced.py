"""TVM's importer of modules that torch.fx has traced: the torch dialect's model, its parameters as buffers, traced by
torch.fx.symbolic_trace, and compiled by TVM's default pipeline; as it is, and with layers (torch.nn.Module) in place of
the functions that there are layers of."""

from __future__ import annotations

from dataclasses import replace

from generators.ops.spec import Unsupported
from harness.backends.target.target import Level, Target
from harness.backends.target.text import swapped
from harness.backends.tvm.layers import LAYERED
from harness.backends.tvm.levels import PACKAGES
from harness.dialects import TORCH

_LOAD = """
def load(parameters):
    import tvm
    from tvm.relax.frontend.torch import from_fx

    traced = torch.fx.symbolic_trace(model)
    given = traced.graph.find_nodes(op="placeholder")
    for node, name in zip(given[len(INPUTS) :], PARAMETERS):  # model takes them last; a module has them as buffers
        traced.register_buffer(f"buffer_{name}", torch.from_numpy(parameters[name]))
        with traced.graph.inserting_before(node):
            node.replace_all_uses_with(traced.graph.get_attr(f"buffer_{name}"))
        traced.graph.erase_node(node)
    for node in traced.graph.find_nodes(op="call_function", target=getattr):
        if node.args[1] == "device":  # there is one, and the importer does not know the attribute
            for user in list(node.users):
                user.kwargs = {name: given for name, given in user.kwargs.items() if given is not node}
            traced.graph.erase_node(node)
    traced.recompile()
    module = from_fx(traced, [(shape, dtype) for dtype, shape in INPUTS.values()])
    machine = tvm.relax.VirtualMachine(tvm.compile(module, tvm.target.Target("llvm")), tvm.cpu())

    def run(*inputs):
        results = machine["main"](*[tvm.runtime.tensor(x) for x in inputs])
        return [result.numpy() if hasattr(result, "numpy") else np.asarray(result) for result in results]

    return run
"""

_TRACE = "what asks for values or sizes in Python cannot be traced (torch.fx, Limitations of Symbolic Tracing)"
_DECLINES = {
    "TraceError|'len' is not supported in symbolic tracing": _TRACE,
    r"TypeError: .*\bProxy\b|`__cuda_array_interface__` must be a dict": _TRACE,
    "Unsupported function types": "the importer has no such function",
    "AssertionError: Unsupported function target": "the importer has no such method",
    r"input_type (torch\.)?complex\d+ is not handled yet": "the importer has no complex numbers",
    "Got unsupported ScalarType BFloat16": "the importer makes constants by numpy, which has no bfloat16",
    "Only a float mask is supported": "the importer takes no masks of truth values",
    r"Unknown resize method:', 'area": "the importer resizes by no areas",
    "NLLLoss expects the dtype of targets": "the importer takes classes, no probabilities of them",
    r"requires the input tensor to have float dtype\. .* is T\.bfloat16": "TVM has no kernel of it for bfloat16",
    "only support float32 and float16 for now": "TVM normalises in float32 and float16",
}

_TRACED = Target(
    "tvm-fx",
    "tvm-fx",
    ("torch", "torch.fx", "tvm", "tvm.relax"),
    TORCH,
    _LOAD,
    {**PACKAGES, "torch": "2.9"},
    Level("tvm-fx", 0),
    refusals_file="torch",
    sample_every=4,
    declines=_DECLINES,
    gradient=Unsupported("what it imports is for inference"),
    opt_in=True,
    inherits=("tvm-O2", "torch/tvm-pt2/tvm"),  # its importer has most translations in common with that one
)

TARGETS = (
    _TRACED,
    replace(
        _TRACED,
        name="tvm-fx-layers",
        load=LAYERED + swapped(_LOAD, ("    module = from_fx(", "    layered(traced)\n    module = from_fx(")),
        level=Level("tvm-fx-layers", 0),
        declines={
            **_DECLINES,
            "Unsupported data type for model parameters": "the importer has parameters of float32 and float16 alone",
        },
        inherits=("tvm-fx", *_TRACED.inherits),
    ),
)

"""PyTorch: eager, and the compilers behind torch.compile and torch.export; inductor also with unsafe math; eager and
inductor on CUDA, eager also with TF32."""

from __future__ import annotations

from dataclasses import replace

from generators.graph import FLOATS
from generators.ops.spec import Unsupported
from harness.backends.programs import (
    control_flow,
    dynamic_gradient,
    hessian,
    jvp,
    memory,
    scalars,
    state,
    tangent_gradient,
    tangent_tangent,
    vmap,
)
from harness.backends.programs.gradient import TORCH_EAGER, torch_compiled
from harness.backends.target import passes
from harness.backends.target.arithmetic import INDUCTOR_FAST, TF32_REFUSES, TORCH_TF32
from harness.backends.target.cuda import on_cuda, torch_on_cuda
from harness.backends.target.target import Level, Target
from harness.backends.target.text import before, swapped
from harness.dialects import TORCH

_TRACED = "it checks its operands by their values, which a compiler that traces does not know"
COMPILED_REFUSES = {(operator, dtype): _TRACED for operator in ("cov", "corrcoef", "gaussian_nll") for dtype in FLOATS}
_RESIDUALS = "lstsq has residuals of a size that depends on the rank, which a compiler that traces does not know"
COMPILED_REFUSES |= {("least_squares", dtype): _RESIDUALS for dtype in FLOATS}
"""(operator, dtype) that PyTorch has, and does not compile as one graph."""

COMPILED_DECLINES = {
    "Could not guard on data-dependent expression": "it says that a size which is known at run time only decides this",
    "does not support running with fake tensors|UnsupportedOperatorException": "it says that it cannot trace this",
    "DynamicOutputShapeException": "it says that it cannot tell the shape of this",
}
"""What it says where rows are chosen by a mask (`kept_roll`), and of sizes that are symbols, by message."""

_UNSIGNED = "inductor promotes no uint16, uint32 or uint64"
INDUCTOR_REFUSES = {**COMPILED_REFUSES, **{("*", dtype): _UNSIGNED for dtype in ("uint16", "uint32", "uint64")}}

_MODULES = ("torch",)
_PACKAGES = {"torch": "2.9"}

_CALL = """
def load(parameters):
    bound = [torch.from_numpy(parameters[name]) for name in PARAMETERS]
    compiled = {compiled}

    def run(*inputs):
        with torch.no_grad():
            outputs = compiled(*[torch.from_numpy(x) for x in inputs], *bound)
        return [output.numpy() for output in outputs]

    return run
"""

_EXPORT = """
class Module(torch.nn.Module):
    def __init__(self, parameters):
        super().__init__()
        for name, array in parameters.items():
            self.register_buffer(name, torch.from_numpy(array))

    def forward(self, *inputs):
        return model(*inputs, *[getattr(self, name) for name in PARAMETERS])


def load(parameters):
    module = Module(parameters)

    def run(*inputs):
        tensors = tuple(torch.from_numpy(x) for x in inputs)
        with torch.no_grad():
            exported = torch.export.export(module, tensors).run_decompositions()
            outputs = exported.module()(*tensors)
        return [output.numpy() for output in outputs]

    return run
"""


_FROZEN = """
import torch._inductor.config


class Module(torch.nn.Module):
    def __init__(self, parameters):
        super().__init__()
        self.full = {}
        for name, array in parameters.items():
            tensor = torch.from_numpy(array)
            if len({one.tobytes() for one in array.reshape(-1)}) == 1:  # all alike, the sign of a zero, too
                self.full[name] = (tensor.shape, tensor.flatten()[0].item(), tensor.dtype)
            else:
                self.register_buffer(name, tensor)

    def constant(self, name):
        if name not in self.full:
            return getattr(self, name)
        shape, value, dtype = self.full[name]
        return torch.full(shape, value, dtype=dtype)

    def forward(self, *inputs):
        return model(*inputs, *[self.constant(name) for name in PARAMETERS])


def load(parameters):
    module = Module(parameters).eval()
    compiled = torch.compile(module, backend="inductor", fullgraph=True, dynamic=False)

    def run(*inputs):
        with torch.no_grad(), torch._inductor.config.patch(freezing=True):  # the tracer asks for it, too
            return [output.numpy() for output in compiled(*[torch.from_numpy(x) for x in inputs])]

    return run
"""
"""Parameters are constants of the compiled function, which inductor folds and packs; those of one number are written
as such."""


def _torch_compile(backend: str, dynamic: bool = False, options: str = "") -> str:
    return f'torch.compile(model, backend="{backend}", fullgraph=True, dynamic={dynamic}{options})'


_UNSAFE = ', options={"cpp.enable_unsafe_math_opt_flag": True, "cpp.enable_floating_point_contract_flag": "fast"}'


_SYMBOLIC_EAGER = """
def compile_once(parameters):
    bound = [torch.from_numpy(parameters[name]) for name in PARAMETERS]

    def run(size, *arrays):
        with torch.no_grad():
            return [output.numpy() for output in model(*[torch.from_numpy(x) for x in arrays], *bound)]

    return run
"""

_SYMBOLIC = """
def compile_once(parameters):
    bound = [torch.from_numpy(parameters[name]){to} for name in PARAMETERS]
    compiled = {compiled}

    def run(size, *arrays):
        tensors = [torch.from_numpy(x){to} for x in arrays]
        if size > 1:  # 0 and 1 are compiled for themselves, as documented
            for tensor, (_, shape) in zip(tensors, ARGUMENTS.values()):
                for axis, dim in enumerate(shape):
                    if dim == "n":
                        torch._dynamo.mark_dynamic(tensor, axis)
        with torch.no_grad():
            return [output.cpu().numpy() for output in compiled(*tensors, *bound)]

    return run
"""

_SYMBOLIC_EXPORT = (
    before(_EXPORT, "def load")
    + """def compile_once(parameters):
    module, n, exported = Module(parameters), torch.export.Dim("n", min=0), []
    symbols = [{i: n for i, dim in enumerate(shape) if dim == "n"} for _, shape in ARGUMENTS.values()]

    def run(size, *arrays):
        tensors = tuple(torch.from_numpy(x) for x in arrays)
        with torch.no_grad():
            if not exported:
                program = torch.export.export(module, tensors, dynamic_shapes=(tuple(symbols),))
                exported.append(program.run_decompositions().module())
            return [output.numpy() for output in exported[0](*tensors)]

    return run
"""
)


def _question_loads(backend: str) -> dict[str, str]:
    """What other questions run, the whole of it compiled."""
    return {
        "dynamic_gradient": dynamic_gradient.torch_compiled(_torch_compile(backend, dynamic=True)),
        "jvp": jvp.torch_compiled(backend),
        "vmap": vmap.torch_compiled(backend),
        "hessian": hessian.torch_compiled(backend),
        "tangent_gradient": tangent_gradient.torch_compiled(backend),
        "tangent_tangent": tangent_tangent.torch_compiled(backend),
        "memory": memory.torch(_torch_compile(backend)),
        "state": state.torch(_torch_compile(backend)),
        "scalars": scalars.torch_compiled(backend),
        **control_flow.torch(f'torch.compile(chosen, backend="{backend}", fullgraph=True, dynamic=False)'),
    }


_CPU = (
    Target(
        "torch-eager",
        "torch",
        _MODULES,
        TORCH,
        _CALL.format(compiled="model"),
        _PACKAGES,
        Level("torch", 0),
        refusals_file="torch",
        symbolic=_SYMBOLIC_EAGER,
        gradient=TORCH_EAGER,
        question_loads={
            "dynamic_gradient": dynamic_gradient.TORCH_EAGER,
            "jvp": jvp.TORCH_EAGER,
            "vmap": vmap.TORCH_EAGER,
            "hessian": hessian.TORCH_EAGER,
            "tangent_gradient": tangent_gradient.TORCH_EAGER,
            "tangent_tangent": tangent_tangent.TORCH_EAGER,
            "memory": memory.torch("model"),
            "state": state.torch("model"),
            "scalars": scalars.TORCH_EAGER,
        },
    ),
    Target(
        "torch-export",
        "torch",
        _MODULES,
        TORCH,
        _EXPORT,
        _PACKAGES,
        Level("torch", 1),
        refuses=COMPILED_REFUSES,
        refusals_file="torch",
        declines=COMPILED_DECLINES,
        sample_every=4,
        symbolic=_SYMBOLIC_EXPORT,
        gradient=Unsupported("it exports for inference: parameters are buffers"),
        question_loads={"state": state.TORCH_EXPORT},
    ),
    Target(
        "torch-aot-eager",
        "torch",
        _MODULES,
        TORCH,
        _CALL.format(compiled=_torch_compile("aot_eager")),
        _PACKAGES,
        Level("torch", 2),
        refuses=COMPILED_REFUSES,
        refusals_file="torch",
        declines=COMPILED_DECLINES,
        sample_every=4,
        symbolic=_SYMBOLIC.format(compiled=_torch_compile("aot_eager", dynamic=True), to=""),
        gradient=torch_compiled(_torch_compile("aot_eager")),
        question_loads=_question_loads("aot_eager"),
    ),
    Target(
        "torch-inductor",
        "torch",
        _MODULES,
        TORCH,
        _CALL.format(compiled=_torch_compile("inductor")),
        _PACKAGES,
        Level("torch", 3),
        refuses=INDUCTOR_REFUSES,
        refusals_file="torch",
        declines=COMPILED_DECLINES,
        sample_every=16,
        symbolic=_SYMBOLIC.format(compiled=_torch_compile("inductor", dynamic=True), to=""),
        gradient=torch_compiled(_torch_compile("inductor")),
        question_loads=_question_loads("inductor"),
        switches=passes.INDUCTOR,
    ),
    Target(
        "torch-inductor-frozen",
        "torch",
        _MODULES,
        TORCH,
        _FROZEN,
        _PACKAGES,
        Level("torch", 4),
        refuses=INDUCTOR_REFUSES,
        refusals_file="torch",
        declines=COMPILED_DECLINES,
        sample_every=16,
        gradient=Unsupported("its parameters are constants"),
        opt_in=True,
    ),
    Target(
        "torch-functionalize",
        "torch",
        _MODULES,
        TORCH,
        _CALL.format(compiled="torch.func.functionalize(model)"),
        _PACKAGES,
        Level("torch-functionalize", 0),
        refuses=COMPILED_REFUSES,
        refusals_file="torch",
        sample_every=16,
        gradient=Unsupported("torch.func.grad is what the question of derivatives asks eager PyTorch for"),
        question_loads={"memory": memory.torch_functionalized()},
        declines={"We only support functionalizing operators": "it functionalises no square_, among others"},
        opt_in=True,
        inherits=("torch-eager",),
    ),
    Target(
        "torch-inductor-fast",
        "torch-fast",  # a worker of its own: what GCC links for unsafe math has all that follows flush subnormals
        _MODULES,
        TORCH,
        _CALL.format(compiled=_torch_compile("inductor", options=_UNSAFE)),
        _PACKAGES,
        Level("torch-inductor-fast", 0),
        refuses=INDUCTOR_REFUSES,
        refusals_file="torch",
        sample_every=64,
        arithmetic=INDUCTOR_FAST,
    ),
)

_BY_NAME = {target.name: target for target in _CPU}
_KERNELS = {r"\"\w+\" not implemented for '\w+'": "it says that this operator has no CUDA kernel of the dtype"}
_CUDA, _INDUCTOR_CUDA = (
    on_cuda(_BY_NAME[cpu], name, torch_on_cuda, declines={**_BY_NAME[cpu].declines, **_KERNELS})
    for cpu, name in (("torch-eager", "torch-cuda"), ("torch-inductor", "torch-inductor-cuda"))
)
_CUDA_TF32 = replace(
    _CUDA,
    name="torch-cuda-tf32",
    level=Level("torch-cuda-tf32", 0),
    load=swapped(
        _CUDA.load,
        ("matmul.allow_tf32 = False  # 10 bits of mantissa are not float32", "matmul.allow_tf32 = True"),
        ("cudnn.allow_tf32 = False", "cudnn.allow_tf32 = True"),
    ),
    symbolic="",
    gradient=Unsupported("what TF32 loses of gradients is not derived"),
    question_loads={},
    refuses=TF32_REFUSES,
    arithmetic=TORCH_TF32,
    inherits=("torch-eager", "torch-cuda"),
)

TARGETS = (*_CPU, _CUDA, _CUDA_TF32, _INDUCTOR_CUDA)

"""PyTorch: eager, and the compilers behind torch.compile and torch.export; eager and inductor on CUDA."""

from __future__ import annotations

from harness.backends.target import Level, Target
from harness.dialects import TORCH

REFUSES: dict[tuple[str, str], str] = {}
"""(operator, dtype) that the dialect can say and PyTorch has no kernel for."""

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

_CUDA = """
torch.backends.cuda.matmul.allow_tf32 = False  # 10 bits of mantissa are not float32
torch.backends.cudnn.allow_tf32 = False


def load(parameters):
    with torch.device("cuda"), torch.no_grad():
        bound = [torch.from_numpy(parameters[name]).cuda() for name in PARAMETERS]
        compiled = {compiled}

    def run(*inputs):
        with torch.device("cuda"), torch.no_grad():
            outputs = compiled(*[torch.from_numpy(x).cuda() for x in inputs], *bound)
        return [output.cpu().numpy() for output in outputs]

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


def _torch_compile(backend: str) -> str:
    return f'torch.compile(model, backend="{backend}", fullgraph=True, dynamic=False)'


TARGETS = (
    Target(
        "torch-eager",
        "torch",
        _MODULES,
        TORCH,
        _CALL.format(compiled="model"),
        _PACKAGES,
        Level("torch", 0),
        refuses=REFUSES,
    ),
    Target("torch-export", "torch", _MODULES, TORCH, _EXPORT, _PACKAGES, Level("torch", 1), refuses=REFUSES, stride=4),
    Target(
        "torch-aot-eager",
        "torch",
        _MODULES,
        TORCH,
        _CALL.format(compiled=_torch_compile("aot_eager")),
        _PACKAGES,
        Level("torch", 2),
        refuses=REFUSES,
        stride=4,
    ),
    Target(
        "torch-inductor",
        "torch",
        _MODULES,
        TORCH,
        _CALL.format(compiled=_torch_compile("inductor")),
        _PACKAGES,
        Level("torch", 3),
        refuses=REFUSES,
        stride=16,
    ),
    Target(
        "torch-cuda",
        "torch-cuda",
        _MODULES,
        TORCH,
        _CUDA.format(compiled="model"),
        _PACKAGES,
        Level("torch-cuda", 0),
        refuses=REFUSES,
        device="cuda",
    ),
    Target(
        "torch-inductor-cuda",
        "torch-cuda",
        _MODULES,
        TORCH,
        _CUDA.format(compiled=_torch_compile("inductor")),
        _PACKAGES,
        Level("torch-cuda", 1),
        refuses=REFUSES,
        stride=16,
        device="cuda",
    ),
)

"""PyTorch and JAX on a GPU: their targets of the CPU, with the arrays of every program on the first CUDA device."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from generators.ops.spec import Unsupported
from harness.backends import jax, torch
from harness.backends.target.arithmetic import TF32_REFUSES, TORCH_TF32
from harness.backends.target.target import Level, Target
from harness.backends.target.text import swapped

_TORCH = """
torch.backends.cuda.matmul.allow_tf32 = False  # 10 bits of mantissa are not float32
torch.backends.cudnn.allow_tf32 = False

"""

_JAX = """
import os

os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"  # leave memory to the other workers
jax.config.update("jax_default_matmul_precision", "highest")  # 10 bits of mantissa (TF32) are not float32

"""

_MADE = re.compile(r"torch\.(from_numpy|tensor)\(")


def torch_on_cuda(text: str) -> str:
    """A `load` of PyTorch whose tensors are on the GPU: each that it makes is sent there, each that it returns is
    fetched."""
    made, rest = "", text
    while found := _MADE.search(rest):
        end = _closing(rest, found.end())
        made, rest = f"{made}{rest[:end]}.cuda()", rest[end:]
    return _TORCH + re.sub(r"(?<!\.cpu\(\))\.numpy\(\)", ".cpu().numpy()", made + rest)


def jax_on_cuda(text: str) -> str:
    """A `load` of JAX whose default device is the GPU."""
    for old, new in (
        ("  # also where there is a GPU", ""),
        ('platforms=["cpu"]', 'platforms=["cuda"]'),
        ('jax.devices("cpu")[0]', 'jax.devices("cuda")[0]'),
    ):
        text = text.replace(old, new)
    return _JAX + text


def _closing(text: str, start: int) -> int:
    """The place after the parenthesis that closes the one which was opened just before `start`."""
    depth = 1
    for place in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if not depth:
            return place + 1
    raise ValueError(f"a parenthesis is not closed in {text[start:]!r}")


def _on_cuda(cpu: Target, name: str, moved: Callable[[str], str], **changes: Any) -> Target:
    """The target of a CPU on a GPU, in a worker of its own. What is known of the one holds for the other: the same
    Python code composes its operators."""
    gradient = cpu.gradient if isinstance(cpu.gradient, Unsupported) else moved(cpu.gradient)
    return replace(
        cpu,
        name=name,
        framework=f"{cpu.framework}-cuda",
        device="cuda",
        level=Level(f"{cpu.framework}-cuda", cpu.level.number),
        load=moved(cpu.load),
        symbolic=moved(cpu.symbolic),
        gradient=gradient,
        question_loads={question: moved(load) for question, load in cpu.question_loads.items()},
        inherits=(cpu.name,),
        **changes,
    )


_TORCH_CPU = {target.name: target for target in torch.TARGETS}
_JAX_CPU = {target.name: target for target in jax.TARGETS}
_DECLINES = {r"\"\w+\" not implemented for '\w+'": "it says that this operator has no CUDA kernel of the dtype"}
_EAGER, _INDUCTOR = (
    _on_cuda(_TORCH_CPU[cpu], name, torch_on_cuda, declines={**_TORCH_CPU[cpu].declines, **_DECLINES})
    for cpu, name in (("torch-eager", "torch-cuda"), ("torch-inductor", "torch-inductor-cuda"))
)
_LOST = Unsupported("what TF32 loses of gradients is not derived")
_TF32 = replace(
    _EAGER,
    name="torch-cuda-tf32",
    level=Level("torch-cuda-tf32", 0),
    load=swapped(
        _EAGER.load,
        ("matmul.allow_tf32 = False  # 10 bits of mantissa are not float32", "matmul.allow_tf32 = True"),
        ("cudnn.allow_tf32 = False", "cudnn.allow_tf32 = True"),
    ),
    symbolic="",
    gradient=_LOST,
    question_loads={},
    refuses=TF32_REFUSES,
    arithmetic=TORCH_TF32,
    inherits=("torch-eager", "torch-cuda"),
)
_PLUGIN = {"jax-cuda13-plugin|jax-cuda12-plugin": "0.5"}

TARGETS = (
    _EAGER,
    _TF32,
    _INDUCTOR,
    *(
        _on_cuda(_JAX_CPU[cpu], name, jax_on_cuda, packages={**_JAX_CPU[cpu].packages, **_PLUGIN}, switches=None)
        for cpu, name in (("jax-eager", "jax-cuda"), ("jax-jit", "jax-cuda-jit"))
    ),
)

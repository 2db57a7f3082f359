"""Targets on a GPU: those of the CPU, with the arrays of every program on the first CUDA device."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from generators.ops.spec import Unsupported
from harness.backends.target.target import Level, Target

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


def on_cuda(cpu: Target, name: str, moved: Callable[[str], str], **changes: Any) -> Target:
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

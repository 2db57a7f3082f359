"""Programs as torch.export saves them, such that nobody should refuse."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from hostile.edit import Build


def _module(function: Callable[..., Any], arguments: str = "a") -> Any:
    """A module whose forward has parameters of these names: dynamic shapes go by them."""
    import torch

    scope: dict[str, Any] = {"function": function}
    exec(f"def forward(self, {arguments}): return function({arguments})", scope)
    return type("Model", (torch.nn.Module,), {"forward": scope["forward"]})()


def _tied() -> Any:
    import torch

    class Tied(torch.nn.Module):
        """Weights that are shared, buffers that change, constants, names that are no identifiers."""

        def __init__(self) -> None:
            super().__init__()
            self.parts = torch.nn.ModuleDict({"a b-c": torch.nn.Linear(3, 3), "größe": torch.nn.Linear(3, 3)})
            self.parts["a b-c"].weight = self.parts["größe"].weight
            self.more = torch.nn.ParameterList([torch.ones(3)])
            self.register_buffer("calls", torch.zeros(1))
            self.register_buffer("once", torch.ones(3), persistent=False)

        def forward(self, x: Any) -> Any:
            self.get_buffer("calls").add_(1)
            parts: Any = self.parts
            return parts["a b-c"](parts["größe"](x)) + self.calls + self.once + self.more[0]

    return Tied()


def _checked(a: Any) -> Any:
    import torch

    size = a.item()
    torch._check(size >= 1)
    torch._check(size < 10)
    return torch.ones(size, 3)


def _quantised() -> Any:
    import torch
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86

    model = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.ReLU(), torch.nn.Flatten()).eval()
    given = (torch.ones(2, 1, 5, 5),)
    how = x86.X86InductorQuantizer().set_global(x86.get_default_x86_inductor_quantization_config())
    prepared = prepare_pt2e(torch.export.export(model, given).module(), how)
    prepared(*given)
    return convert_pt2e(prepared)


def _case(name: str) -> tuple[Any, tuple[Any, ...], Any]:
    """(module, example inputs, dynamic shapes)"""
    import torch
    from torch.export import Dim

    x, row = torch.ones(4, 4), Dim("row", min=3, max=50)
    match name:
        case "derived":
            return _module(lambda a, b: a[1:] + b, "a, b"), (torch.ones(5), torch.ones(4)), ({0: row}, {0: row - 1})
        case "twice":
            given = (torch.ones(8, 3),)
            return _module(lambda a: a.reshape(-1, a.shape[0] // 2) + a.shape[0] ** 2), given, ({0: 2 * row},)
        case "root":
            return _module(lambda a: a.new_zeros(int(a.shape[0] ** 0.5))), (torch.ones(9),), ({0: Dim.DYNAMIC},)
        case "number":
            return _module(lambda a, n: a.new_zeros(n) + n, "a, n"), (x, 4), ({0: Dim.AUTO}, Dim.DYNAMIC)
        case "item":
            return _module(_checked), (torch.tensor(4),), None
        case "tied":
            return _tied(), (torch.ones(2, 3),), None
        case "containers":
            made = lambda a, b: [defaultdict(list, z=a["k"]), deque([b[0]]), OrderedDict(o=None), {0: 2.5, 1: "s"}]  # noqa: E731
            return _module(made, "a, b"), (OrderedDict(k=x), [x, (x,)]), None
        case "mapped":
            return _module(torch.vmap(lambda t: t.sin().sum())), (x,), None
        case "tangent":
            return _module(lambda a: torch.func.jvp(torch.sin, (a,), (a,))), (x,), None
        case "logic":
            return _module(lambda a: (a ^ True, a & a, a.int() << 2)), (torch.ones(2, dtype=torch.bool),), None
        case "mixed":
            return _module(torch.autocast("cpu", torch.bfloat16)(lambda a: torch.einsum("ij,kj->ik", a, a))), (x,), None
        case "spectrum":
            return _module(lambda a: (torch.fft.fft(a) * (1 + 2j)).abs()), (x,), None
        case "changed":
            return _module(lambda a: a.add_(1)), (x.clone(),), None
        case "quantised":
            return _quantised(), (torch.ones(2, 1, 5, 5),), None
        case _:
            raise KeyError(name)


def _exported(name: str, folder: Path, marker: Path) -> Path:
    import torch

    model, given, shapes = _case(name)
    path = folder / "model.pt2"
    torch.export.save(torch.export.export(model, given, dynamic_shapes=shapes), path)
    return path


NAMES = "derived twice root number item tied containers mapped tangent logic mixed spectrum changed quantised"
HARMLESS: dict[str, Build] = {name: partial(_exported, name) for name in NAMES.split()}

"""PyTorch's pickled modules (.pt, .pth): opening one runs whatever it carries, so that it is refused unless trusted."""

from __future__ import annotations

from harness.conversions.formats.format import Format, Runner, not_empty

_OPEN = """
def open_model(path):
    import inspect
    import os

    import torch

    os.environ["TORCH_FORCE_WEIGHTS_ONLY_LOAD"] = str(int(not TRUST))
    module = torch.load(path, map_location="cpu", weights_only=not TRUST)
    if not isinstance(module, torch.nn.Module):
        raise TypeError(f"it holds a {type(module).__name__}, not a module: weights without the code that uses them")
    module.eval()
    names = [
        name
        for name, parameter in inspect.signature(module.forward).parameters.items()
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD and parameter.default is parameter.empty
    ]

    def call(*arrays):
        with torch.no_grad():
            returned = module(*[torch.from_numpy(array) for array in arrays])
        return [output.numpy() for output in torch.utils._pytree.tree_leaves(returned)]

    return [(name, None, None) for name in names], [], call  # the file tells no types
"""

FORMATS = (
    Format(
        "pickled", ".pt", (".pt", ".pth"), not_empty, executes="a pickle runs whatever code it names when it is opened"
    ),
)

RUNNERS = (
    Runner(
        "torch-pickled",
        "pickled",
        "torch",
        ("torch",),
        {"torch": "2.9"},
        _OPEN,
        inherits=("torch-eager",),
        owner="PyTorch",
    ),
)

"""JAX: a run that is saved half way and goes on with arrays spread otherwise. JAX itself has no file format for what is
trained; the file is numpy's (.npz), of whole arrays. It must give what one device gives that is never interrupted."""

from __future__ import annotations

from harness.strategies.jax.devices import EVEN, MESH
from harness.strategies.jax.program import MODULES
from harness.strategies.strategy import WORLDS, Strategy

_AXES = {"data": (), "fsdp": ("d",), "tensor": (None, "d")}
"""The dimensions of parameters that are spread."""
_SPREAD = '''
AXES = [{before}, {after}]  # the dimensions of parameters that are spread: before the checkpoint, after it


def spread(parameters):
    """Some dimensions spread over the devices, of what the optimiser keeps, too."""
    return {{name: placed(value, *AXES[0][: value.ndim]) for name, value in parameters.items()}}
'''
_RESUMED = '''
def resumed(*trained):
    """Parameters, running statistics and states as a file has them, spread otherwise."""
    leaves, tree = jax.tree.flatten(trained)
    with tempfile.TemporaryDirectory() as folder:
        np.savez(f"{folder}/half.npz", *leaves)
        with np.load(f"{folder}/half.npz") as file:
            p, b, states = jax.tree.unflatten(tree, [file[f"arr_{i}"] for i in range(len(leaves))])
    AXES.append(AXES.pop(0))
    return spread(p), spread(b), {name: spread(state) for name, state in states.items()}
'''
_SAMPLES = '''
def feed(arrays):
    """The samples spread over the devices."""
    return [placed(array, "d") for array in arrays]
'''


def _resumed(before: str, after: str) -> Strategy:
    spread = _SPREAD.format(before=_AXES[before], after=_AXES[after])
    pieces = {"placed": MESH, "spread": spread, "feed": _SAMPLES, "resumed": _RESUMED}
    return Strategy(
        f"jax-resume-{before}-{after}", "jax", MODULES, WORLDS, pieces, imports=("import tempfile",), shards=False,
        one_process=True, policy="cast", unsupported=EVEN,
    )  # fmt: skip


STRATEGIES = (_resumed("data", "fsdp"), _resumed("fsdp", "tensor"))

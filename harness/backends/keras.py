"""Keras 3 on each of its back ends: one program of `keras.ops`, and a worker for each, since Keras takes its back end
when it is imported."""

from __future__ import annotations

from dataclasses import replace

from generators.ops import OPS
from generators.ops.spec import Unsupported
from harness.backends.target.target import Level, Target
from harness.dialects.keras import KERAS, PLACES

_IMPORTS = """import os

os.environ["KERAS_BACKEND"] = "{name}"  # read when Keras is imported

{imports}"""

_LOAD = """
def load(parameters):
    bound = [keras.ops.convert_to_tensor(parameters[name]) for name in PARAMETERS]

    def run(*inputs):
        outputs = model(*[keras.ops.convert_to_tensor(x) for x in inputs], *bound)
        arrays = [keras.ops.convert_to_numpy(output) for output in outputs]
        # places and counts, where Keras gives them in 32 bits
        return [x.astype(dtype) if dtype in {narrowed} else x for x, (dtype, _) in zip(arrays, OUTPUTS)]

    return run
"""

_WIDE = ("int64", "uint64", "float64")
_UNSIGNED = ("uint16", "uint32")
"""What Keras computes in another dtype: its result_type gives 32 bits in place of 64 (BIT64_TO_BIT32_DTYPE in
keras/src/backend/common/dtypes.py; of TensorFlow, uint64 only), and PyTorch is given the next wider signed integers in
place of unsigned ones (TORCH_DTYPES in keras/src/backend/torch/core.py)."""

_WHOLE = tuple(name for name in OPS if name not in PLACES)


def _refused(name: str, dtypes: tuple[str, ...]) -> dict[tuple[str, str], str]:
    """Of int64 all but places and counts, which 32 bits hold."""
    said = f"on {name} Keras takes another dtype for"
    whole = {(operator, "int64"): f"{said} int64" for operator in _WHOLE if "int64" in dtypes}
    return {("*", dtype): f"{said} {dtype}" for dtype in dtypes if dtype != "int64"} | whole


_BACK_ENDS = {
    "tensorflow": ({"tensorflow-cpu|tensorflow": "2.16"}, "tf-eager", ("uint64",)),
    "jax": ({"jax": "0.5"}, "jax-eager", _WIDE),
    "torch": ({"torch": "2.9"}, "torch-eager", _WIDE + _UNSIGNED),
}
"""What each needs, the target that has its kernels, and the dtypes that Keras does not compute in on it."""

_DECLINES = {
    "Expected `float32` or `float64`": "Keras says that it takes no other dtype",
    "Could not find device for node|is not in the list of allowed values": "TensorFlow has no kernel for this dtype",
}

TARGETS = tuple(
    Target(
        f"keras-{name}",
        f"keras-{name}",
        (name,),
        replace(KERAS, imports=_IMPORTS.format(name=name, imports=KERAS.imports)),
        _LOAD.format(narrowed=tuple(dtype for dtype in others if dtype == "int64")),
        {"keras": "3.11", **packages},
        Level(f"keras-{name}", 0),
        sample_every=4,
        refuses=_refused(name, others),
        refusals_file=name,
        declines=_DECLINES,
        gradient=Unsupported("gradients are asked of the framework itself"),
        opt_in=True,
        inherits=(eager,),
    )
    for name, (packages, eager, others) in _BACK_ENDS.items()
)

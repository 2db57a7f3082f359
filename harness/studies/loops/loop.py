"""How a network is trained in a study, and what its state is: arrays by name, the same names in every framework, so
that a run goes on from them bit for bit, in this process or another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

import numpy as np

from generators.training.networks import Network, Shape

FRAMEWORKS = ("torch", "tensorflow", "jax")
OPTIMIZERS: Mapping[str, tuple[Mapping[str, float], tuple[str, ...]]] = {
    "sgd": ({}, ()),
    "momentum": ({"momentum": 0.9}, ("momentum",)),
    "adam": ({"beta1": 0.9, "beta2": 0.999, "eps": 1e-7}, ("first", "second")),
    "rmsprop": ({"rho": 0.9, "eps": 1e-7}, ("square",)),
    "adagrad": ({"initial": 0.1, "eps": 1e-7}, ("total",)),
}
"""What each takes, with what it has by default (Keras' defaults, in every framework), and what it keeps of a parameter.
Keras' momentum is what it adds to a parameter, with the sign and the learning rate in it; PyTorch's is a sum of
gradients. Keras has RMSprop's and Adagrad's eps under the root, and Adam's before its correction."""
DEVICES = ("cpu", "gpu")
SCALE: Mapping[str, float] = {"float16": 1024.0, "bfloat16": 1.0}
"""A constant: where it followed overflows, as frameworks have it, steps that a fault makes infinite were left out."""


@dataclass(frozen=True)
class Loop:
    """framework: of FRAMEWORKS; options: of the optimiser, in place of the defaults; batch: samples of a step;
    dtype: float32 or float64; compute: float16 or bfloat16 (""; nothing is printed then), in which layers compute, with
    mixed precision (P. Micikevicius et al., Mixed Precision Training, 2018): each step rounds the samples and the
    parameters to it, those of normalisation apart, which computes in dtype and rounds its result; activations and
    their gradients have 16 bits; the loss, what the optimiser gets, keeps and changes, and running statistics have
    dtype. With float16 the loss is multiplied by SCALE for the backward pass; deterministic: the framework's documented
    deterministic mode; probe: source text of
    `def probe(name, value, given)`, through which the input (`l0.input`), each parameter (`l0.weight`) and the result
    (`l0.result`) of every layer that has parameters go (""; nothing is printed then); given: names of further arrays,
    which the program takes as inputs and hands to probe as a dict, with the number of the step as `step`. stepping:
    source text (""; nothing is printed then) of what takes the place of the loop's steps. PyTorch: `def steps(state,
    model, named, buffers, optimizer, found)`, a generator of the number and the learning rate of each step, which may
    go back, or end before its time. TensorFlow and JAX: `class Stepping`, made of the compiled step (TensorFlow: the
    subject), the state and `found`, and called as the step is; more: names of arrays that it leaves in `found`, which
    the program returns behind the others."""

    framework: str
    network: Network
    optimizer: str = "adam"
    options: tuple[tuple[str, float], ...] = ()
    batch: int = 128
    dtype: str = "float32"
    compute: str = ""
    deterministic: bool = True
    device: str = "cpu"
    probe: str = ""
    given: tuple[str, ...] = ()
    stepping: str = ""
    more: tuple[str, ...] = ()

    @property
    def scale(self) -> float:
        """By which the loss is multiplied for the backward pass."""
        return SCALE.get(self.compute, 1.0)

    @property
    def wide(self) -> tuple[str, ...]:
        """Parameters of normalisation."""
        norms = {layer.name for layer in self.network.layers if layer.kind == "batch_norm"}
        return tuple(name for name in self.network.parameters if name.partition(".")[0] in norms)

    @property
    def settings(self) -> dict[str, float]:
        """The optimiser's options, all of them."""
        return {**OPTIMIZERS[self.optimizer][0], **dict(self.options)}

    @property
    def slots(self) -> tuple[str, ...]:
        """What the optimiser keeps of each parameter."""
        return OPTIMIZERS[self.optimizer][1]

    @property
    def statistics(self) -> dict[str, int]:
        """Running statistics of batch normalisation by name, `l1.mean` and `l1.variance`, and their lengths."""
        normed = {layer.name: layer.shape[0] for layer in self.network.layers if layer.kind == "batch_norm"}
        return {f"{name}.{key}": size for name, size in normed.items() for key in ("mean", "variance")}

    @property
    def state(self) -> dict[str, Shape]:
        """Names and shapes of the whole state: `step` (int64), `parameter.l0.weight`, `buffer.l1.mean`, and the
        optimiser's, `first.l0.weight`."""
        shapes = self.network.parameters
        found: dict[str, Shape] = {"step": ()}
        found |= {f"parameter.{name}": shape for name, shape in shapes.items()}
        found |= {f"buffer.{name}": (size,) for name, size in self.statistics.items()}
        return found | {f"{slot}.{name}": shape for slot in self.slots for name, shape in shapes.items()}

    def begin(self, parameters: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The state before the first step. parameters: by name, `l0.weight`."""
        found: dict[str, np.ndarray] = {}
        for name, shape in self.state.items():
            kind, _, own = name.partition(".")
            if kind == "parameter":
                found[name] = parameters[own].astype(self.dtype)
            else:
                value = self.settings["initial"] if kind == "total" else float(own.endswith(".variance"))
                found[name] = np.full(shape, value if kind in ("buffer", "total") else 0.0, self.dtype)
        return found | {"step": np.zeros((), np.int64)}

    def steps(self, samples: int) -> int:
        """So many steps an epoch of these samples has; the last batch has what is left."""
        return ceil(samples / self.batch)


CURVES = ("loss", "accuracy", "batches")
"""A number for each step: mean loss and share of right predictions of its batch before the step (float64), and the
CRC-32 of the batch as the framework got it (uint32)."""
TESTED = ("predictions", "test_loss")
"""Of the test samples after the last step: the class of each (int64), and the mean loss (float64); empty and NaN where
there are none."""

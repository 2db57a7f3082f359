"""A distribution strategy: how a training program is spread over ranks, as pieces of its text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from generators.training.networks import INPUT, Layer, columns_of
from generators.training.runs import Training
from generators.training.settings import DTYPES, FLOATS

WORLDS = (1, 2, 3, 4, 8)
"""Numbers of ranks that most strategies are run with."""
Reason = Callable[[Training, int], str | None]
"""Why a strategy cannot run a training run on so many ranks, or None."""


@dataclass(frozen=True)
class Noise:
    """Monte Carlo arithmetic: so many runs in float64 in which results, gradients and parameters are off by a random
    part of this unit roundoff, or of a coarser one where layers compute in less; what gradients lose on their way
    between ranks comes on top."""

    runs: int
    unit: float
    coarse: float = 0.0
    sent: float = 0.0


@dataclass(frozen=True, eq=False)
class Strategy:
    """name:        framework-strategy-variant
    framework:   whose programs it is printed for
    modules:     what a rank imports before its first program; they must be there for the strategy to be available
    worlds:      numbers of ranks that it is run with
    pieces:      functions of the program by name, in place of those of training on one device
    imports:     lines that the pieces need
    factor:      of the loss, as source text: `world` where the ranks' gradients are averaged, "1" where they are added
    shards:      batch statistics are those of each rank's samples (True), or of the whole batch (False)
    ranges:      ranges of quantisers are those of each rank's samples, too
    replicas:    each rank has the whole model, and all are given the same gradients: what they return of gradients,
                 parameters and the optimiser is the same on all, bit for bit
    one_process: one process drives all devices, and returns what every rank would
    apart:       its processes run no other strategy's programs
    off:         why it is never available here ("": it may be)
    environment: the one of environments.toml that its processes run in ("": the one that Dissent runs in)
    double:      it takes runs in float64
    lossy:       the relative error with which gradients travel by design (0: none)
    policy:      which layers of a run in mixed precision compute in bfloat16: "autocast" (PyTorch's list), "cast" (all:
                 parameters and data are cast), or "all", by strategies that take no other runs; "": it takes none in
                 mixed precision
    narrow:      the dtype that layers compute in, in mixed precision
    reference:   pieces of the run on one device that it is held against, where these are its own: of a run on so
                 many ranks, with noise or without
    unsupported: why it cannot run a training run on so many ranks, or None; somebody wrote every reason down"""

    name: str
    framework: str
    modules: tuple[str, ...]
    worlds: tuple[int, ...]
    pieces: Mapping[str, str]
    imports: tuple[str, ...] = ()
    factor: str = "1"
    shards: bool = True
    ranges: bool = False
    replicas: bool = False
    one_process: bool = False
    apart: bool = False
    off: str = ""
    environment: str = ""
    double: bool = True
    lossy: float = 0.0
    policy: str = ""
    narrow: str = "bfloat16"
    reference: Callable[[Training, int, bool], Mapping[str, str]] | None = None
    unsupported: Reason = field(default=lambda training, world: None)

    @property
    def packages(self) -> tuple[str, ...]:
        """The distributions that must be installed, the framework itself first; "a|b" means either."""
        several = {
            "tensorflow": ("tensorflow-cpu|tensorflow", "keras"),
            "tf_keras": ("tensorflow-model-optimization", "tf-keras", "tensorflow-cpu|tensorflow"),
            "keras": ("keras", "jax"),
        }
        beside = {"torchrec": ("torchrec", "fbgemm-gpu-cpu")}
        return several.get(self.framework, self.modules[:1]) + beside.get(self.environment, ())

    @property
    def dtypes(self) -> tuple[str, ...]:
        """Of the runs that it takes."""
        taken = {"": FLOATS, "autocast": DTYPES, "cast": DTYPES, "all": ("mixed",)}[self.policy]
        return tuple(dtype for dtype in taken if self.double or dtype != "float64")

    def refusal(self, training: Training, world: int) -> str | None:
        """Why it cannot run a training run on so many ranks: its dtype, its framework's reason, or its own."""
        if training.settings.dtype not in self.dtypes:
            return f"runs in {training.settings.dtype} are not for it"
        return first_reason(*MISSING.get(self.framework, ()), self.unsupported)(training, world)

    def processes(self, world: int) -> int:
        """How many processes run on so many ranks or devices."""
        return 1 if self.one_process else world

    def variables(self, world: int) -> dict[str, str]:
        """Variables that its processes need."""
        if self.framework in ("tensorflow", "tf_keras"):
            devices = {"VIRTUAL_DEVICES": str(world if self.one_process else 1)}
            return devices | ({"ONLY": self.name, "TF_NUM_INTEROP_THREADS": "8"} if self.apart else {})
        if self.framework not in ("jax", "keras"):
            return {}
        # Keras' processes are its own: its distribution is the whole process'
        own = {"KERAS_BACKEND": "jax"} if self.framework == "keras" else {}
        # a device of its own for each, and none for the threads of one operation
        return own | {"XLA_FLAGS": f"--xla_force_host_platform_device_count={world} --xla_cpu_multi_thread_eigen=false"}


def columns_of_samples(layer: Layer, shapes: Mapping[str, tuple[int, ...]]) -> str:
    """The columns of the samples that a layer takes, as source text; "" for one that takes none."""
    if layer.kind not in ("columns", "embedding_bag", "dropout"):
        return ""
    first, last = columns_of(layer, shapes)
    return f"{INPUT}[:, {first}:{last}]"


def refuses(trait: str, why: str) -> Reason:
    """A reason wherever a run has this trait (`Training.traits`)."""
    return lambda training, world: why if trait in training.traits else None


_NO_PENALTY = refuses("penalised", "regularisers are Keras' own; elsewhere optimisers decay weights")
MISSING: Mapping[str, tuple[Reason, ...]] = {
    "torch": (refuses("lamb", "PyTorch has no LAMB"), _NO_PENALTY),
    "jax": (_NO_PENALTY,),
    "tf_keras": (_NO_PENALTY,),
}
"""What a whole framework does not have."""


def anything(training: Training, world: int) -> str | None:
    """It refuses nothing."""
    return None


def even_parts(why: str) -> Reason:
    """A reason where the ranks can't share some part of a batch evenly."""

    def unsupported(training: Training, world: int) -> str | None:
        return why if any(size % world for size in training.settings.part_sizes) else None

    return unsupported


def first_reason(*reasons: Reason) -> Reason:
    """The first of several reasons that holds."""

    def unsupported(training: Training, world: int) -> str | None:
        return next((why for reason in reasons if (why := reason(training, world))), None)

    return unsupported

"""PyTorch: every rank has the whole model and a share of the batch. DistributedDataParallel with its options and hooks,
the same by hand, and optimisers whose state is spread (ZeRO)."""

from __future__ import annotations

from collections.abc import Mapping

from generators.training.runs import Training
from harness.strategies.strategy import WORLDS, Reason, Strategy, first_reason, refuses
from harness.strategies.torch.program import MODULES

DDP = "from torch.nn.parallel import DistributedDataParallel"

HALF = 2.0**-11
"""The unit roundoff of float16, in which a hook sends gradients."""

START = '''
def start(rank, world):
    """One group of processes for the whole life of this one."""
    torch.set_num_threads(1)
    if not dist.is_initialized():
        meeting = os.environ.get("RENDEZVOUS", "env://")
        dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=world)
'''
SUMMED = '''
def summed(value, world):
    """The sum over all ranks."""
    value = value.clone()
    dist.all_reduce(value)
    return value
'''
MODULE = '''
def module(subject):
    """The model itself, with the names that it was given."""
    return subject.module
'''
SYNCHRONISED = '''
def backward(subject, x, y, coefficient, last, world):
    """Adds the gradients of these samples; returns their part of the loss. last: the optimiser steps next."""
    with contextlib.nullcontext() if last else subject.no_sync():
        loss = criterion(subject(x), y, coefficient)
        (loss * FACTOR(world)).backward()
    return loss.detach()
'''


def distribute(lines: str, optimizer: str = "optimizer_of(subject.parameters())") -> str:
    """The piece that wraps the model."""
    return f"""
def distribute(model, rank, world):
    start(rank, world)
{lines}
    return subject, {optimizer}
"""


def small_shards(training: Training, world: int) -> str | None:
    """Batch statistics of one sample are refused, or not defined."""
    if "batch_norm" not in training.network.kinds or min(training.settings.part_sizes) // world >= 2:
        return None
    return "batch normalisation of less than two samples (Expected more than 1 value per channel when training)"


def _ddp(
    name: str, options: str = "find_unused_parameters=True", pieces: Mapping[str, str] | None = None, after: str = "",
    imports: tuple[str, ...] = (), optimizer: str = "optimizer_of(subject.parameters())", lossy: float = 0.0,
    reason: Reason = lambda training, world: None,
) -> Strategy:  # fmt: skip
    text = f"    subject = DistributedDataParallel(model, {options})"
    return Strategy(
        name, "torch", MODULES, WORLDS,
        {
            "start": START, "distribute": distribute(text + after, optimizer), "module": MODULE, "summed": SUMMED,
            **(pieces or {}),
        },
        imports=(DDP, *imports), factor="world", lossy=lossy, policy="autocast", replicas=True,
        unsupported=first_reason(small_shards, reason),
    )  # fmt: skip


APART = refuses("batch_norm", "the ranks' running statistics stay apart")
_RECOMPUTED = refuses("batch_norm", "the forward pass is computed again, and its running statistics are updated again")

_ALL_REDUCE = '''
def backward(subject, x, y, coefficient, last, world):
    """Adds the gradients of these samples; returns their part of the loss. last: the optimiser steps next."""
    loss = criterion(subject(x), y, coefficient)
    (loss * FACTOR(world)).backward()
    if last:
        for parameter in subject.parameters():
            if parameter.requires_grad and parameter.grad is not None:
                dist.all_reduce(parameter.grad)
    return loss.detach()
'''
_ZERO_STATES = '''
def states(subject, optimizer):
    """What the optimiser keeps of each parameter, gathered from the ranks that keep it."""
    for rank in range(dist.get_world_size()):
        optimizer.consolidate_state_dict(to=rank)
        if rank == dist.get_rank():
            kept = optimizer.state_dict()["state"]
    found = {}
    for number, (name, _) in enumerate(module(subject).named_parameters()):
        for key, value in kept.get(number, {}).items():
            if isinstance(value, torch.Tensor):
                found[f"{name}.{key}"] = value
    return found
'''
_ZERO = "from torch.distributed.optim import ZeroRedundancyOptimizer"
_HOOKS = "from torch.distributed.algorithms.ddp_comm_hooks import default_hooks"
_CHECKPOINT = '''
def backward(subject, x, y, coefficient, last, world):
    """Adds the gradients of these samples; returns their part of the loss. last: the optimiser steps next."""
    outputs = checkpoint(subject, x, use_reentrant=False)
    loss = criterion(outputs, y, coefficient)
    (loss * FACTOR(world)).backward()
    return loss.detach()
'''

_COMPILED = """
    dist._DEFAULT_FIRST_BUCKET_BYTES = 64  # DDPOptimizer splits the graph at each bucket: make some
    subject.compile(backend="aot_eager", dynamic=False)"""

STRATEGIES = (
    Strategy(
        "torch-all-reduce", "torch", MODULES, WORLDS,
        {
            "start": START, "distribute": distribute("    subject = model"), "summed": SUMMED, "backward": _ALL_REDUCE,
        },
        policy="autocast", replicas=True, unsupported=APART,
    ),
    _ddp("torch-ddp"),
    _ddp("torch-ddp-static-graph", "static_graph=True"),
    _ddp("torch-ddp-bucket-view", "find_unused_parameters=True, gradient_as_bucket_view=True"),
    _ddp("torch-ddp-small-buckets", "find_unused_parameters=True, bucket_cap_mb=0.0001"),
    _ddp("torch-ddp-no-sync", pieces={"backward": SYNCHRONISED}, imports=("import contextlib",)),
    _ddp(
        "torch-ddp-hook", after="\n    subject.register_comm_hook(None, default_hooks.allreduce_hook)",
        imports=(_HOOKS,),
    ),
    _ddp(
        "torch-ddp-fp16-hook", after="\n    subject.register_comm_hook(None, default_hooks.fp16_compress_hook)",
        imports=(_HOOKS,), lossy=HALF,
    ),
    _ddp(
        "torch-ddp-checkpoint", pieces={"backward": _CHECKPOINT}, reason=_RECOMPUTED,
        imports=("from torch.utils.checkpoint import checkpoint",),
    ),
    _ddp(
        "torch-ddp-compiled", "find_unused_parameters=True, bucket_cap_mb=0.0001", after=_COMPILED,
    ),
    _ddp(
        "torch-ddp-zero", pieces={"states": _ZERO_STATES}, imports=(_ZERO,),
        optimizer="ZeroRedundancyOptimizer(subject.parameters(), OPTIMIZER, **OPTIONS)",
    ),
)  # fmt: skip

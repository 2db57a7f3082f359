"""PyTorch: ranks that average parameters after steps of their own (local SGD), and hooks that begin as an ordinary mean
of gradients. With a period of one step, one group of all ranks, or in a hook's first phase each is what one device
does."""

from __future__ import annotations

from generators.training.runs import Training
from harness.strategies.strategy import WORLDS, Strategy, first_reason
from harness.strategies.torch.ddp import APART, DDP, MODULE, START, SUMMED, distribute, small_shards
from harness.strategies.torch.program import MODULES

_HOOKS = "from torch.distributed.algorithms.ddp_comm_hooks"
_AVERAGERS = "from torch.distributed.algorithms.model_averaging"

_MEAN_GRADIENTS = '''
def gradients(subject):
    """Those of the ranks, whose mean the parameters move by."""
    found = {}
    for name, parameter in module(subject).named_parameters():
        if parameter.requires_grad and parameter.grad is not None:
            found[name] = parameter.grad.clone()
            dist.all_reduce(found[name])
            found[name] /= dist.get_world_size()
    return found
'''


def _linear_steps(training: Training, world: int) -> str | None:
    """Averaged parameters are those of averaged gradients where a step is linear in them and keeps nothing."""
    settings = training.settings
    if settings.optimizer != "sgd" or dict(settings.options)["momentum"]:
        return "local steps are the step of the mean gradient for SGD without momentum only"
    return "each rank would clip its own gradients" if settings.clip else None


def _local(name: str, averager: str, imports: tuple[str, ...], worlds: tuple[int, ...] = WORLDS) -> Strategy:
    optimizer = f"PostLocalSGDOptimizer(optimizer_of(subject.parameters()), {averager})"
    return Strategy(
        name, "torch", MODULES, worlds,
        {
            "start": START, "distribute": distribute("    subject = model", optimizer), "summed": SUMMED,
            "gradients": _MEAN_GRADIENTS,
        },
        imports=("from torch.distributed.optim import PostLocalSGDOptimizer", *imports), factor="world",
        policy="autocast", unsupported=first_reason(APART, _linear_steps),
    )  # fmt: skip


def _hooked(name: str, state: str, hook: str, imports: tuple[str, ...]) -> Strategy:
    lines = f"""    subject = DistributedDataParallel(model, find_unused_parameters=True)
    subject.register_comm_hook({state}, {hook})"""
    return Strategy(
        name, "torch", MODULES, WORLDS,
        {"start": START, "distribute": distribute(lines), "module": MODULE, "summed": SUMMED},
        imports=(DDP, *imports), factor="world", policy="autocast", unsupported=small_shards,
    )  # fmt: skip


STRATEGIES = (
    _local("torch-local-sgd", "averagers.PeriodicModelAverager(period=1)", (f"{_AVERAGERS} import averagers",)),
    _local(
        "torch-local-sgd-hierarchical", "HierarchicalModelAverager(OrderedDict([(1, world)]))",
        (
            "from collections import OrderedDict",
            f"{_AVERAGERS}.hierarchical_model_averager import HierarchicalModelAverager",
        ),
        worlds=(2, 3, 4, 8),
    ),
    # the hook adds up over all ranks in its first step, and over the group, which is all ranks, from the second on
    _hooked(
        "torch-ddp-post-local", "post_localSGD_hook.PostLocalSGDState(None, dist.group.WORLD, 1)",
        "post_localSGD_hook.post_localSGD_hook", (f"{_HOOKS} import post_localSGD_hook",),
    ),
    # PowerSGD itself is an approximation of which no bound is documented: its first phase only
    _hooked(
        "torch-ddp-power-start", "powerSGD_hook.PowerSGDState(None, start_powerSGD_iter=10**6)",
        "powerSGD_hook.powerSGD_hook", (f"{_HOOKS} import powerSGD_hook",),
    ),
)  # fmt: skip

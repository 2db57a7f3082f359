"""PyTorch: ranks that have fewer batches than others (torch.distributed.algorithms.Join). One that is done answers the
others' collectives, by documentation with gradients of zero; gradients are divided by the number of ranks at the start,
or by that of those that are left; at the end all have the parameters of those that left last."""

from __future__ import annotations

from collections.abc import Mapping

from generators.training.runs import Training
from harness.strategies.strategy import WORLDS, Strategy, first_reason, refuses
from harness.strategies.torch.ddp import DDP, MODULE, START, distribute
from harness.strategies.torch.program import MODULES

_STAY = '''
STEP = [0]


def stays(rank):
    """How many steps a rank takes part in: each one fewer than the rank before, and at least one."""
    return max(1, len(BATCHES) - rank)
'''
_BACKWARD = '''
def backward(subject, x, y, coefficient, last, world):
    """Adds the gradients of these samples; returns their part of the loss. last: the optimiser steps next."""
    total = torch.zeros((), dtype=DTYPE)
    if STEP[0] < stays(dist.get_rank()):
        loss = criterion(subject(x), y, coefficient)
        (loss * FACTOR(world)).backward()
        total = loss.detach()
    else:  # without gradients the optimiser leaves everything as it is
        leave()
    STEP[0] += last
    return total
'''
_SUMMED = '''
LOSSES = []


def summed(value, world):
    """The sum over all ranks: it is there when they have left."""
    LOSSES.append(value.clone())
    return LOSSES[-1]


def leave():
    """Answer the collectives of the others until they have left, too."""
    while JOINED:
        JOINED.pop().__exit__(None, None, None)
'''
_PREDICT = """
def predict(subject, x):
    leave()
    for loss in LOSSES:
        dist.all_reduce(loss)
    return subject(x)
"""
_STATES = '''
def states(subject, optimizer):
    """What the optimiser of the rank that stays longest keeps of each parameter."""
    named = module(subject).named_parameters()
    found = [{f"{name}.{key}": value for name, p in named for key, value in optimizer.state.get(p, {}).items()}]
    dist.broadcast_object_list(found)
    return {name: value for name, value in found[0].items() if isinstance(value, torch.Tensor)}
'''
_THEIR_SAMPLES = '''
def share(part, rank, world):
    """The samples of the ranks that are left."""
    shares = np.array_split(part, {world})
    return np.concatenate([shares[rank] for rank in range({world}) if STEP[0] < stays(rank)])
'''
_THEIR_GRADIENTS = '''
def backward(subject, x, y, coefficient, last, world):
    """Adds the gradients of these samples; returns their part of the loss. last: the optimiser steps next."""
    left = sum(STEP[0] < stays(rank) for rank in range({world}))
    loss = criterion(subject(x), y, coefficient)
    (loss * {scale}).backward()
    STEP[0] += last
    return loss.detach()
'''
_BEGIN = """
def distribute(model, rank, world):
    STEP[0] = 0
    return model, optimizer_of(model.parameters())
"""
_NO_STATISTICS = refuses("batch_norm", "the running statistics are those of the last rank that leaves")
_NO_PARTS = refuses("parts", "what was added up before is averaged again, ranks that left counted with zero")


def _joined(name: str, initial: bool) -> Strategy:
    """initial: is the number of ranks at the start what gradients are divided by?"""

    def reference(training: Training, world: int, noise: bool) -> Mapping[str, str]:
        text = _THEIR_GRADIENTS.format(world=world, scale="1" if initial else f"({world} / left)")
        return {"stay": _STAY, "distribute": _BEGIN, "share": _THEIR_SAMPLES.format(world=world), "backward": text}

    lines = f"""    subject = DistributedDataParallel(model, find_unused_parameters=True)
    JOINED.append(Join([subject], divide_by_initial_world_size={initial}))
    JOINED[-1].__enter__()"""
    return Strategy(
        name, "torch", (*MODULES, "torch.distributed.algorithms.join"), WORLDS,
        {
            "start": START, "joined": "\nJOINED = []  # what ranks are in, until they leave\n", "stay": _STAY,
            "distribute": distribute(lines), "module": MODULE, "summed": _SUMMED, "backward": _BACKWARD,
            "predict": _PREDICT, "states": _STATES,
        },
        imports=(DDP, "from torch.distributed.algorithms.join import Join"), factor="world", policy="autocast",
        reference=reference, unsupported=first_reason(_NO_STATISTICS, *([_NO_PARTS] if initial else [])),
    )  # fmt: skip


STRATEGIES = (_joined("torch-ddp-join", True), _joined("torch-ddp-join-left", False))

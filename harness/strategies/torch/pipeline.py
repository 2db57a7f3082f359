"""PyTorch: the layers in stages, one or two a rank, and a batch in as many parts as there are stages on their way
through them (torch.distributed.pipelining)."""

from __future__ import annotations

from collections.abc import Callable

from generators.training.runs import Training
from harness.strategies.strategy import WORLDS, Reason, Strategy, first_reason, refuses
from harness.strategies.torch.ddp import START, SUMMED
from harness.strategies.torch.program import MODULES

PIPELINES = (*MODULES, "torch.distributed.pipelining", "torch.fx.passes.split_module")
IMPORTS = (
    "from torch.distributed.pipelining import PipelineStage, schedules",
    "from torch.fx.passes.split_module import split_module",
)

STAGES = '''
def stages(model, count):
    """The model in so many parts, cut before layers with parameters where one value is all that goes on."""
    traced = torch.fx.symbolic_trace(model)
    nodes = list(traced.graph.nodes)
    found = []
    for number, node in enumerate(nodes):
        if node.op == "call_module" and any(True for _ in traced.get_submodule(node.target).parameters()):
            before = set(nodes[:number])
            alive = [value for value in before if any(user not in before for user in value.users)]
            found.append(number if len(alive) == 1 else 0)
    cuts = [number for number in found[1:] if number]
    chosen = [cuts[k * len(cuts) // (count - 1)] for k in range(count - 1)]
    whole = split_module(traced, model, lambda node: sum(cut <= nodes.index(node) for cut in chosen))
    found = [getattr(whole, f"submod_{number}") for number in range(count)]
    for part in found:
        part.forward = torch.autocast("cpu", torch.bfloat16, AUTOCAST)(part.forward)
    return found
'''
_DISTRIBUTE = '''
def distribute(model, rank, world):
    start(rank, world)
    subject = Pipeline(model, rank, world)
    return subject, optimizer_of([p for name, p in model.named_parameters() if subject.owner(name) == rank])


class Pipeline:
    """The stages, of which this rank has some (`numbers`), and a schedule for each shape of a batch."""

    def __init__(self, model, rank, world):
        self.model = model
        self.count = {count}
        self.parts = stages(model, self.count)
        self.numbers = {numbers}
        self.schedules = {{}}

    def schedule(self, x):
        """Batches go in parts of one size: as few as there are stages, or a little more."""
        if x.shape not in self.schedules:
            count = next(n for n in range(self.count, len(x) + 1) if len(x) % n == 0 and n % max(1, n // {world}) == 0)
            own = [PipelineStage(self.parts[k], k, self.count, torch.device("cpu")) for k in self.numbers]
            self.schedules[x.shape] = {schedule}
        return self.schedules[x.shape]

    def owner(self, name):
        """The rank that trains a parameter: 0 for one that no stage uses."""
        found = [k for k, part in enumerate(self.parts) if name in dict(part.named_parameters())]
        return {owner} if found else 0

    def train(self):
        self.model.train()

    def eval(self):
        self.model.eval()
'''
BACKWARD = '''
def backward(subject, x, y, coefficient, last, world):
    """Adds the gradients of these samples; returns their part of the loss. last: the optimiser steps next."""
    losses = []
    CURRENT.update(y=y, coefficient=coefficient)
    schedule = subject.schedule(x)
    given = (x,) if 0 in subject.numbers else ()
    ends = subject.count - 1 in subject.numbers
    schedule.step(*given, target=torch.arange(len(x)) if ends else None, losses=losses if ends else None)
    return sum(loss.detach() for loss in losses) / FACTOR(world) if ends else torch.zeros((), dtype=DTYPE)


CURRENT = {}  # what the loss needs of the samples of a batch


def criterion_of(outputs, samples):
    loss = criterion(outputs, CURRENT["y"][samples], CURRENT["coefficient"][samples])
    return loss * FACTOR(dist.get_world_size())
'''
_SHARE = '''
def share(part, rank, world):
    """All samples of a batch, which the schedule takes apart."""
    return part
'''
GATHERED = '''
def gathered(subject, found):
    """What the ranks found, by name: each name from the rank that owns the parameter."""
    everything = [None] * dist.get_world_size()
    dist.all_gather_object(everything, found)
    names = {name for part in everything for name in part}
    known = [name for name, _ in subject.model.named_parameters()]
    owners = {name: subject.owner(next(p for p in known if f"{name}.".startswith(f"{p}."))) for name in names}
    return {name: everything[owner][name] for name, owner in owners.items() if name in everything[owner]}
'''
GRADIENTS = """
def gradients(subject):
    named = subject.model.named_parameters()
    return gathered(subject, {name: whole(p.grad).clone() for name, p in named if p.grad is not None})
"""
PARAMETERS = """
def parameters(subject):
    return gathered(subject, {name: whole(p.detach()).clone() for name, p in subject.model.named_parameters()})
"""
STATES = '''
def states(subject, optimizer):
    """What the optimisers of all ranks keep of each parameter."""
    found = {}
    for name, parameter in subject.model.named_parameters():
        for key, value in optimizer.state.get(parameter, {}).items():
            if isinstance(value, torch.Tensor):
                found[f"{name}.{key}"] = whole(value)
    return gathered(subject, found)
'''
PREDICT = '''
def predict(subject, x):
    """By the whole model, with the parameters of all stages."""
    current = parameters(subject)
    return torch.func.functional_call(subject.model, current, (x,))
'''
MODULE = '''
def module(subject):
    """The model itself, with the names that it was given."""
    return subject.model
'''


def layers_for(stages: Callable[[int], int]) -> Reason:
    """Needs: so many stages on so many ranks, one place less to cut at."""

    def unsupported(training: Training, world: int) -> str | None:
        return "fewer layers than stages" if len(training.network.cuts) < stages(world) - 1 else None

    return unsupported


def _counts(size: int, least: int, ranks: int) -> list[int]:
    """Numbers of equal parts of so many samples that a schedule takes, as in the program."""
    return [n for n in range(least, size + 1) if size % n == 0 and n % max(1, n // ranks) == 0]


def _enough(stages: int) -> Reason:
    def unsupported(training: Training, world: int) -> str | None:
        if min(training.settings.part_sizes) < stages * world:
            return "fewer samples in a part than stages"
        ranks = world if stages > 1 else 1
        if any(not _counts(size, stages * world, ranks) for size in training.settings.part_sizes):
            return "samples that do not go round (num_microbatches must be a multiple of the number of rounds)"
        return None

    return unsupported


_NO_TIES = refuses("tied", "a weight that two stages share")
_NO_CLIPPING = refuses("clipped", "clip_grad_norm_ sees the gradients of one stage only")
_NO_STATISTICS = refuses("batch_norm", "batch statistics are those of each part of a batch")
plain = first_reason(_NO_STATISTICS, _NO_TIES, _NO_CLIPPING)


def _pipeline(name: str, schedule: str, v_shaped: bool = False, stages: int = 1) -> Strategy:
    """schedule: its class; stages: of each rank; v_shaped: the last rank has the middle ones, else they go round."""
    numbers, owner = "[rank]" if stages == 1 else "[rank, rank + world]", "found[0] % dist.get_world_size()"
    if v_shaped:
        numbers, owner = "[rank, 2 * world - 1 - rank]", "min(found[0], self.count - 1 - found[0])"
    own = "own[0]" if stages == 1 else "own"
    wrapped = f"schedules.{schedule}({own}, count, criterion_of, scale_grads=False)"
    lines = _DISTRIBUTE.format(
        count=f"{stages} * world",
        numbers=numbers,
        owner=owner,
        schedule=wrapped,
        world="dist.get_world_size()" if stages > 1 else "1",
    )
    return Strategy(
        name, "torch", PIPELINES, WORLDS,
        {
            "start": START, "stages": STAGES, "distribute": lines, "share": _SHARE, "backward": BACKWARD,
            "summed": SUMMED, "gathered": GATHERED, "gradients": GRADIENTS, "parameters": PARAMETERS,
            "states": STATES, "predict": PREDICT, "module": MODULE,
        },
        imports=IMPORTS, shards=False, policy="autocast",
        unsupported=first_reason(plain, layers_for(lambda world: stages * world), _enough(stages)),
    )  # fmt: skip


STRATEGIES = (
    _pipeline("torch-pipeline-gpipe", "ScheduleGPipe"),
    _pipeline("torch-pipeline-1f1b", "Schedule1F1B"),
    _pipeline("torch-pipeline-looped-bfs", "ScheduleLoopedBFS", stages=2),
    _pipeline("torch-pipeline-interleaved-1f1b", "ScheduleInterleaved1F1B", stages=2),
    _pipeline("torch-pipeline-interleaved-zb", "ScheduleInterleavedZeroBubble", stages=2),
    _pipeline("torch-pipeline-zbv", "ScheduleZBVZeroBubble", v_shaped=True, stages=2),
    _pipeline("torch-pipeline-dualpipev", "ScheduleDualPipeV", v_shaped=True, stages=2),
)

"""PyTorch: PowerSGD (T. Vogels, S. P. Karimireddy, M. Jaggi, 2019), the hook of DistributedDataParallel that sends
matrices of low rank in the place of gradients. What that loses is defined: one device does the same to shares."""

from __future__ import annotations

from collections.abc import Mapping

from generators.training.runs import Training
from harness.strategies.strategy import WORLDS, Strategy, first_reason, refuses
from harness.strategies.torch.ddp import DDP, MODULE, START, SUMMED, distribute
from harness.strategies.torch.program import MODULES

FIRST = 2
"""Reductions that are an ordinary mean: the fewest that the hook takes."""
_BEGIN = '''
POWER = {}


def distribute(model, rank, world):
    """The random matrices begin anew with each run. They are drawn in the order in which gradients come first."""
    POWER.update(calls=0, errors={}, right={}, order=[], rng=np.random.RandomState(0))
    for number, parameter in enumerate(p for p in model.parameters() if p.requires_grad):
        parameter.register_post_accumulate_grad_hook(lambda _, number=number: POWER["order"].append(number))
    return model, optimizer_of(model.parameters())
'''
_COMPRESSED = '''
def backward(subject, x, y, coefficient, last, world):
    """Adds the gradients of these samples, of {world} shares; returns their part of the loss."""
    trained = [parameter for parameter in subject.parameters() if parameter.requires_grad]
    before = [torch.zeros_like(p) if p.grad is None else p.grad for p in trained]
    total, shares = 0.0, []
    for mine in np.array_split(np.arange(len(x)), {world}):
        for parameter in trained:
            parameter.grad = None
        loss = criterion(subject(x[mine]), y[mine], coefficient[mine])
        loss.backward()
        shares.append([earlier + {world} * p.grad for earlier, p in zip(before, trained)])
        total += loss.detach()
    sent = [torch.stack(own) for own in zip(*shares)]  # of each parameter, by share
    found = [own.mean(0) for own in sent]
    if POWER["calls"] >= {first}:
        order = POWER["order"][: len(sent)]
        matrices = [number for number in order if worth(sent[number][0].reshape(len(sent[number][0]), -1))]
        if POWER["calls"] == {first}:
            torch.manual_seed(POWER["rng"].randint(1_000_000_000))
            for number in matrices:
                wide = found[number].reshape(len(found[number]), -1)
                columns = min(*wide.shape, {rank})
                POWER["right"][number] = torch.randn(wide.shape[1], columns, dtype=torch.{dtype}).to(DTYPE)
        for number in matrices:
            found[number] = approximated(number, sent[number])
    POWER["calls"] += 1
    for parameter, gradient in zip(trained, found):
        parameter.grad = gradient
    return total


def worth(matrix):
    """Does it save anything?"""
    rows, columns = matrix.shape
    return (rows + columns) * min(rows, columns, {rank}) < rows * columns


def approximated(number, sent):
    """The mean of matrices as a product of two narrow ones. What that leaves of each is added to its next one."""
    m = sent.reshape(len(sent), sent.shape[1], -1) + POWER["errors"].get(number, 0.0)
    right = orthogonal(POWER["right"][number])
    left = orthogonal((m @ right).sum(0)){noise}
    right = (m.transpose(1, 2) @ left).mean(0)
    product = left @ right.T
    POWER["right"][number], POWER["errors"][number] = right, m - product
    return product.reshape(sent.shape[1:])


def orthogonal(matrix):
    """Its columns made orthogonal, by Gram and Schmidt."""
    found = []
    for column in matrix.T:
        for earlier in found:
            column = column - (earlier * column).sum() * earlier{lost}
        found.append(column / (column.norm() + {epsilon}))
    return torch.stack(found, 1)
'''
_JITTER = "\n    jitter([(None, left)])"
_LOST = """
        if column.norm() < 64 * (2 * len(column) + 4) * UNIT * matrix[:, len(found)].norm():
            column = column * torch.nan"""
"""What rounding leaves of a column that lies in the span of those before: its direction may be any, and nothing that
comes of it is determined. The product of n elements, and that of a column with itself, which normalised it, are off by
n units each (N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2002, 3.1); a direction that is less
than 64 times as large as that is taken for none."""
FORMULAS = ("attention", "gru", "lstm")
EPSILON = 1e-8
"""Added to norms, so that a gradient of zero stays one."""


def _power(name: str, rank: int) -> Strategy:
    def reference(training: Training, world: int, noise: bool) -> Mapping[str, str]:
        text = _COMPRESSED.format(
            world=world,
            rank=rank,
            first=FIRST,
            epsilon=EPSILON,
            noise=_JITTER * noise,
            lost=_LOST * noise,
            dtype=training.settings.stored,
        )
        return {"distribute": _BEGIN, "backward": text}

    state = (
        f"powerSGD_hook.PowerSGDState(None, matrix_approximation_rank={rank}, start_powerSGD_iter={FIRST}, "
        f"min_compression_rate=1, orthogonalization_epsilon={EPSILON})"
    )
    lines = f"""    subject = DistributedDataParallel(model)
    state = {state}
    subject.register_comm_hook(state, powerSGD_hook.powerSGD_hook)"""
    return Strategy(
        name, "torch", MODULES, WORLDS,
        {"start": START, "distribute": distribute(lines), "module": MODULE, "summed": SUMMED},
        imports=(DDP, "from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook"), factor="world",
        reference=reference,
        unsupported=first_reason(
            refuses("batch_norm", "its reference has no statistics of shares"),
            # with find_unused_parameters=True another collective runs beside the hook's own, in any order: gloo aborts
            refuses("idle", "without find_unused_parameters every parameter needs a gradient"),
            *(refuses(kind, "its gradients come in another order by the reference's formulas") for kind in FORMULAS),
        ),
    )  # fmt: skip


STRATEGIES = (_power("torch-ddp-power", 1), _power("torch-ddp-power-two", 2))

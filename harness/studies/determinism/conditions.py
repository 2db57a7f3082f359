"""One case on one target under conditions that ought not to matter, in the framework's deterministic mode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Self

from generators.graphs import Case
from harness.backends import Target
from harness.execute.pool import Job, Limits, Pool
from oracles.determinism import Judgement, Moment, Trace, judge
from oracles.judge.outcome import Outcome, Value

MODES: Mapping[str, str] = {
    "torch": "import torch\ntorch.use_deterministic_algorithms(True)\n",
    "tensorflow": ("import tensorflow as tf\ntf.random.set_seed(0)\ntf.config.experimental.enable_op_determinism()\n"),
}
"""What switches a framework's documented deterministic mode on; the others have none on a CPU."""
_OFFSET = '''

aligned = load


def moved(array):
    """The same values, one element off the start of an allocation."""
    buffer = np.zeros(array.size + 1, array.dtype)
    view = buffer[1:].reshape(array.shape)
    view[...] = array
    return view


def load(parameters):
    compiled = aligned({name: moved(array) for name, array in parameters.items()})
    return lambda *inputs: compiled(*[moved(array) for array in inputs])
'''


@dataclass(frozen=True)
class Condition:
    """promised: do frameworks document that results have the same bits under it, in their deterministic mode? why:
    where that, or its absence, is written."""

    name: str
    promised: bool
    why: str


_DOCUMENTED = "the same software on the same hardware (pages on reproducibility of PyTorch and TensorFlow)"
CONDITIONS = (
    Condition("again in the process", True, _DOCUMENTED),
    Condition("after other work", True, _DOCUMENTED),
    Condition("in another process", True, _DOCUMENTED),
    Condition("in other memory", False, "nothing is said of alignment"),
    Condition("on two threads", False, "nothing is said of the number of threads"),
)


@dataclass(frozen=True)
class Found:
    """judgements: by condition; refused: why the target returned nothing ("": it did)."""

    judgements: Mapping[str, Judgement] = field(default_factory=dict)
    refused: str = ""


class Bench:
    """Two pools, whose processes have one thread and two. Use as a context manager."""

    def __init__(self, seconds: float = 120.0) -> None:
        self.one = Pool(Limits(seconds=seconds), shared=False)
        self.two = Pool(Limits(seconds=seconds, threads=2), shared=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.one.close()
        self.two.close()

    def examine(self, target: Target, case: Case, other: Case) -> Found:
        """The case under each of CONDITIONS against its first run. other: what runs in between. Raises what a pool
        raises."""
        job = job_of(target, case)
        first, again = self.one.run([job, job])
        if not isinstance(first, Value):
            return Found(refused=reason(first))
        between, after = self.one.run([job_of(target, other), job])
        del between  # work that fails is work, too
        (offset,) = self.one.run([replace(job, program=job.program + _OFFSET)])
        self.one.restart_worker(*job.worker)
        (fresh,) = self.one.run([job])
        (threads,) = self.two.run([job])
        outcomes = dict(zip((c.name for c in CONDITIONS), (again, after, fresh, offset, threads), strict=True))
        base = trace_of(first)
        return Found({c.name: judge([base, trace_of(outcomes[c.name])], c.promised) for c in CONDITIONS})


def job_of(target: Target, case: Case) -> Job:
    """The target's own program of the case, after what switches the deterministic mode on."""
    text = MODES.get(target.framework, "") + target.program(case.graph)
    return Job(target.framework, target.modules, text, case.arrays, target.environment)


def reason(outcome: Outcome) -> str:
    """How a run ended that returned nothing, in one line."""
    return str(outcome).splitlines()[0]


def trace_of(outcome: Outcome) -> Trace:
    """Outputs of a call; how it ended where it returned none, which is a difference."""
    if isinstance(outcome, Value):
        return [(Moment("call"), {f"output {i}": array for i, array in enumerate(outcome.outputs)})]
    return [(Moment(reason(outcome)), {})]

"""Training runs under strategies: the reference on one device, the run on ranks, and the judgement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np

from generators.bounds.bounded import PRECISION
from generators.training.runs import Training, arrays_of, plainer, seeded_training, unpenalised, with_sgd
from harness.execute import environments
from harness.execute.ranks import RankOutcome, RankOutputs, RankPools
from harness.findings.known.deviations import KnownDeviation
from harness.strategies import Strategy
from harness.strategies.strategy import MISSING, Noise, first_reason
from harness.training.programs import program, single_device
from oracles.judge.compare import Expected
from oracles.judge.discrepancy import Discrepancy
from oracles.judge.outcome import Crash, Rejected, Timeout, Value
from oracles.judge.verdict import Status, judge
from oracles.training import sharding

Arrays = Mapping[str, np.ndarray]
ATTEMPTS = 40
"""Runs that are drawn for a strategy until it takes one: five of six have no tables, which some strategies need."""


class NoResult(ValueError):
    """A training run that has no result where one is needed; the message says why. Where one device has none, nothing
    is to be learnt from ranks."""


def available(strategy: Strategy) -> str | None:
    """Why a strategy cannot be used here, or None. Nothing is imported."""
    if strategy.off:
        return strategy.off
    try:
        environments.interpreter(strategy.environment)
    except environments.EnvironmentsError as error:
        return str(error)
    have = environments.versions_of(strategy.packages, strategy.environment)
    missing = [package.split("|")[-1] for package in strategy.packages if package not in have]
    return f"{', '.join(missing)} is not installed" if missing else None


def version_of(strategy: Strategy) -> str:
    """The version of its framework; "0" where that is not installed."""
    return next(iter(environments.versions_of(strategy.packages[:1], strategy.environment).values()), "0")


def with_dtype(training: Training, dtype: str | None) -> Training:
    """The run in another precision; as it is without one."""
    return replace(training, settings=replace(training.settings, dtype=dtype)) if dtype else training


def adapted(training: Training, strategy: Strategy, world: int) -> Training:
    """The run, or what is left of it that the strategy supports, in a dtype that it takes; itself where nothing is."""
    training = with_dtype(training, None if training.settings.dtype in strategy.dtypes else strategy.dtypes[0])
    missing = first_reason(*MISSING.get(strategy.framework, ()))
    if missing(training, world):
        fewer = (unpenalised(training), with_sgd(training), unpenalised(with_sgd(training)))
        training = next(run for run in fewer if not missing(run, world))
    if strategy.refusal(training, world) is None:
        return training
    plain = plainer(training, 2 * world)
    return next((run for run in plain if strategy.refusal(run, world) is None), training)


def drawn_for(seed: int, number: int, blocks: int, dtype: str | None, strategy: Strategy, world: int) -> Training:
    """The run with this number of a hunt, adapted to a strategy; where that takes nothing of it (it needs tables, say),
    the first of ATTEMPTS - 1 others that it takes; itself where it takes none."""
    attempts = (seeded_training(seed, number, blocks, turn) for turn in range(ATTEMPTS))
    runs = (adapted(with_dtype(run, dtype), strategy, world) for run in attempts)
    first = next(runs)
    return next((run for run in chain([first], runs) if strategy.refusal(run, world) is None), first)


@dataclass(frozen=True)
class Judgement:
    """What is made of one run. part: of what is compared (`gradient.l0.weight`) that is wrong; excused: ids of known
    deviations, whose parts were left out; largest: the greatest part of what was allowed that a rank was off by, NaN
    where nothing was compared; difference, allowed: the greatest difference of what agrees, and what was allowed there;
    cpu: processor seconds of all ranks; reason: why it was not compared."""

    status: Status
    discrepancy: Discrepancy | None = None
    part: str = ""
    excused: tuple[str, ...] = ()
    elements: int = 0
    undetermined: int = 0
    largest: float = float("nan")
    difference: float = 0.0
    allowed: float = 0.0
    cpu: float = 0.0
    reason: str = ""


@dataclass
class TrainingJudge:
    """Pools of ranks, known deviations, what the arrays of a run are, and references that were computed before (of the
    last runs). unconfirmed: failures that did not come again in fresh ranks, and were not believed, with a count."""

    pools: RankPools
    known: Sequence[KnownDeviation] = ()
    arrays: Callable[[Training], Arrays] = arrays_of
    unconfirmed: Counter[str] = field(default_factory=Counter)
    _references: dict[tuple[Training, str, int, float, object], tuple[Expected, Arrays]] = field(default_factory=dict)

    def reference(
        self, training: Training, framework: str, shards: int, lossy: float = 0.0, own: Strategy | None = None
    ) -> Expected:
        """What a run must give; see oracles/training/sharding.py. shards: of each batch, whose statistics batch
        normalisation uses. lossy: the relative error with which gradients travel. own: the strategy, where its
        reference is another than that of all. Raises NoResult."""
        key = (training, framework, shards, lossy, _kind(own))
        if key not in self._references:
            if len(self._references) > 256:
                self._references.pop(next(iter(self._references)))
            single, sent = single_device(framework, shards), single_device(framework, shards, sent=lossy > 0)
            arrays, mixed = self.arrays(training), training.settings.dtype == "mixed"
            low_precision, unit = mixed or single.ranges, PRECISION[training.settings.stored].unit
            if single.ranges:  # levels take the smaller factor; what is smooth between them keeps the greater one so
                unit *= sharding.FACTOR / sharding.LOW_PRECISION_FACTOR
            noise = Noise(
                sharding.LOW_PRECISION_RUNS if low_precision else sharding.RUNS, unit,
                PRECISION[own.narrow if own else "bfloat16"].unit if mixed else 0.0, lossy,
            )  # fmt: skip
            if own and own.reference:
                single, sent = (
                    replace(one, policy=own.policy, pieces={**one.pieces, **own.reference(training, shards, noisy)})
                    for one, noisy in ((single, False), (sent, True))
                )
            outcomes = [
                self.pools.run(one.modules, 1, program(training, one, how), arrays, one.variables(1), one.environment)
                for one, how in ((single, None), (sent, noise))
            ]
            once, noisy = (outcome.ranks[0] for outcome in map(_outputs_of, outcomes))
            runs = [
                {name.split("/", 1)[1]: array for name, array in noisy.items() if name.startswith(f"{number}/")}
                for number in range(noise.runs + 1)
            ]
            self._references[key] = sharding.expect(runs[0], runs[1:], once, low_precision), once
        return self._references[key][0]

    def on_one_device(self, training: Training, strategy: Strategy, world: int) -> Arrays:
        """What one device returns in the run's own dtype, whole batches at a time; where the strategy's reference is
        another than that of all, what that one returns. Raises NoResult."""
        own = strategy if strategy.reference else None
        shards = world if own else 1
        self.reference(training, strategy.framework, shards, 0.0, own)
        return self._references[training, strategy.framework, shards, 0.0, _kind(own)][1]

    def returned(self, training: Training, strategy: Strategy, world: int) -> Arrays:
        """What the first rank returns. Raises NoResult where the run fails."""
        return _outputs_of(self._run(training, strategy, world)).ranks[0]

    def _run(self, training: Training, strategy: Strategy, world: int) -> RankOutcome:
        text, given = program(training, strategy), self.arrays(training)
        call = strategy.modules, strategy.processes(world), text, given, strategy.variables(world), strategy.environment
        outcome = self.pools.run(*call)
        if isinstance(outcome, RankOutputs):
            return outcome
        again = self.pools.run(*call)  # in fresh ranks: the old ones were killed
        if isinstance(again, RankOutputs):
            self.unconfirmed[f"{strategy.name}: {_told(outcome)}"] += 1
        return again

    def expected(self, training: Training, strategy: Strategy, world: int) -> Expected:
        """What a run under a strategy must give. Raises NoResult."""
        own = strategy if strategy.reference else None
        shared = strategy.ranges or (strategy.shards and "batch_norm" in training.network.kinds)
        apart = own or strategy.lossy > 0 or shared
        shards = world if apart else 1
        return self.reference(training, strategy.framework, shards, strategy.lossy, own)

    def examine(self, training: Training, strategy: Strategy, world: int) -> Judgement:
        """Run it on so many ranks and judge what each of them returns. A result that is missing is a failure."""
        return self.observe(training, strategy, world)[0]

    def observe(self, training: Training, strategy: Strategy, world: int) -> tuple[Judgement, tuple[Arrays, ...]]:
        """As `examine`, with what each rank returned: nothing where the run failed or did not take place."""
        why = strategy.refusal(training, world)
        if why:
            return Judgement("unsupported", reason=why), ()
        try:
            expected = self.expected(training, strategy, world)
        except NoResult as error:
            return Judgement("unsupported", reason=f"one device has no result: {error}"), ()
        version = version_of(strategy)
        here = [known for known in self.known if known.concerns(strategy.name, training.traits, version)]
        outcome = self._run(training, strategy, world)
        if not isinstance(outcome, RankOutputs):
            verdict = judge(expected, outcome)
            assert verdict.discrepancy is not None
            entry = next((known for known in here if known.covers("", verdict.discrepancy)), None)
            if entry:
                reason = f"known: {entry.id}"
                return Judgement("unsupported", excused=(entry.id,), cpu=outcome.cpu, reason=reason), ()
            return Judgement(verdict.status, verdict.discrepancy, cpu=outcome.cpu), ()
        found = self._compared(expected, here, outcome)
        if strategy.replicas and found.status in ("agree", "undetermined"):
            found = _agreeing(found, here, outcome.ranks)
        return replace(found, cpu=outcome.cpu), outcome.ranks

    def _compared(self, expected: Expected, here: Sequence[KnownDeviation], outcome: RankOutputs) -> Judgement:
        excused: list[str] = []
        elements = undetermined = 0
        largest, most = 0.0, sharding.Margin()
        for rank, given in enumerate(outcome.ranks):
            wrong = sharding.missing(expected, given)
            if wrong:
                told = Discrepancy("outputs", f"rank {rank}: {wrong}")
                entry = next((known for known in here if known.covers("", told)), None)
                if entry:
                    return Judgement("unsupported", excused=(entry.id,), reason=f"known: {entry.id}")
                return Judgement("mismatch", told)
            for name, type_, bound in zip(expected.names, expected.types, expected.values, strict=True):
                verdict = judge(Expected((name,), (type_,), (bound,)), Value((given[name],)))
                elements += verdict.elements
                undetermined += verdict.undetermined
                if verdict.discrepancy:
                    entry = next((k for k in here if k.covers(name, verdict.discrepancy)), None)
                    if entry is None:
                        told = replace(verdict.discrepancy, message=f"rank {rank}: {verdict.discrepancy.message}")
                        return Judgement("mismatch", told, name, tuple(excused), elements, undetermined)
                    excused.append(entry.id)
                elif bound.floating and bound.value.size:
                    margin = sharding.margin(bound, given[name])
                    largest, most = max(largest, margin.ratio), max(most, margin, key=lambda m: m.difference)
        status: Status = "undetermined" if elements == undetermined else "agree"
        return Judgement(
            status, None, "", tuple(dict.fromkeys(excused)), elements, undetermined, largest, most.difference,
            most.allowed,
        )  # fmt: skip


def _agreeing(found: Judgement, here: Sequence[KnownDeviation], ranks: Sequence[Arrays]) -> Judgement:
    """The judgement of replicas of which each is right by itself: are they the same, bit for bit?"""
    excused = list(found.excused)
    for name, told in sharding.disagreements(ranks):
        entry = next((known for known in here if known.covers(name, told)), None)
        if entry is None:
            return replace(found, status="mismatch", discrepancy=told, part=name, excused=tuple(excused))
        excused.append(entry.id)
    return replace(found, excused=tuple(dict.fromkeys(excused)))


def _told(outcome: Rejected | Crash | Timeout) -> str:
    """A failure in one line."""
    match outcome:
        case Rejected(kind, message):
            text = f"{kind}: {message}"
        case Crash(how, detail):
            text = f"{how}: {detail}"
        case Timeout(seconds):
            text = f"no result after {seconds:g} s"
    return text.partition("\n")[0].removesuffix(": ")


def _kind(own: Strategy | None) -> object:
    """What strategies have in common whose references are the same."""
    return own and (own.policy, own.narrow, own.reference)


def _outputs_of(outcome: RankOutcome) -> RankOutputs:
    match outcome:
        case RankOutputs():
            return outcome
        case _:
            raise NoResult(_told(outcome))

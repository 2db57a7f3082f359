"""Are results the same bits again, in another process, after other work? Are random operators what their seeds say?"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from hypothesis import Phase, given, settings

from generators import caseio
from generators.graphs import PLAIN, Case, cases
from harness.backends import TARGETS
from harness.backends.probe import probe
from harness.questions.forward import FORWARD
from harness.search.campaign import operators_for
from harness.studies.determinism import random_operators
from harness.studies.determinism.conditions import CONDITIONS, Bench, reason, trace_of
from oracles.determinism import BROKEN, VARIES, judge, same
from oracles.judge.outcome import Value

NAMES = ("torch-eager", "torch-inductor", "tf-graph", "tf-xla", "jax-jit", "ort-all", "tvm-O3")
COSTLY = 24
"""One of so many of the profile's examples: each is five programs in three processes."""


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    with Bench() as bench:
        yield bench


@pytest.mark.slow(one_in=9, ci=5)
@pytest.mark.parametrize("name", NAMES)
def test_the_same_bits(name: str, bench: Bench, record_property: Callable[[str, object], None]) -> None:
    """Drawn cases; what is promised must hold, what varies otherwise is counted with its size."""
    target = TARGETS[name]
    why = probe(target).reason
    if why:
        pytest.skip(f"{name}: {why}")
    counts = dict.fromkeys((*(c.name for c in CONDITIONS), "compared", "refused"), 0)
    largest, before = 0.0, []

    def check(case: Case) -> None:
        nonlocal largest
        if target.unsupported(case.graph):
            return
        found = bench.examine(target, case, before[-1] if before else case)
        before.append(case)
        counts["refused" if found.refused else "compared"] += 1
        for condition, judgement in found.judgements.items():
            for difference in judgement.differences:
                counts[condition] += 1
                largest = max(largest, difference.largest)
            if judgement.verdict == BROKEN:
                pytest.fail(f"{name}, {condition}: {judgement.differences[0]}\n{caseio.dumps(case)}")

    drawn = given(cases(6, operators_for(target, FORWARD.drawn), PLAIN))(check)
    examples = max(2, settings().max_examples // COSTLY)
    settings(phases=(Phase.explicit, Phase.generate), max_examples=examples)(drawn)()
    record_property("determinism", {**counts, "largest_ulps": largest})


@pytest.mark.slow(one_in=4, ci=3)
@pytest.mark.parametrize("framework", random_operators.OPERATORS)
def test_random_operators(framework: str, bench: Bench) -> None:
    """One seed: the same bits again, in another process and on two threads; another seed: others, every operator."""
    job, names = random_operators.job(framework, 7), tuple(random_operators.OPERATORS[framework])
    first, again = bench.one.run([job, job])
    bench.one.restart_worker(*job.worker)
    (fresh,) = bench.one.run([job])
    (threads,) = bench.two.run([job])
    assert isinstance(first, Value), reason(first)
    for other, what in ((again, "again"), (fresh, "in another process"), (threads, "on two threads")):
        judged = judge([trace_of(first), trace_of(other)], promised=True)
        assert not judged.differences, f"{framework} {what}: {judged.differences[0]}"
    (second,) = bench.one.run([random_operators.job(framework, 8)])
    assert isinstance(second, Value), reason(second)
    alike = [name for name, a, b in zip(names, first.outputs, second.outputs, strict=True) if same(a, b)]
    assert alike == []


@pytest.mark.slow
def test_jit_draws_what_eager_jax_draws(bench: Bench) -> None:
    """Random bits do not depend on compilation (JAX' design of random numbers); what is computed from them may round
    otherwise, by a few ulps."""
    eager, compiled = bench.one.run([random_operators.job("jax", 7), random_operators.job("jax", 7, compiled=True)])
    assert isinstance(eager, Value), reason(eager)
    assert isinstance(compiled, Value), reason(compiled)
    judged = judge([trace_of(eager), trace_of(compiled)], promised=False)
    whole = {name: i for i, name in enumerate(random_operators.OPERATORS["jax"])}
    for name in ("uniform", "shuffle", "randint", "categorical"):
        assert same(eager.outputs[whole[name]], compiled.outputs[whole[name]]), name
    for difference in judged.differences:
        assert judged.verdict == VARIES
        assert difference.largest <= 64, str(difference)

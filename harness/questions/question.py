"""A question: what is run of a case on a target, and what a correct run returns. Everything from the laboratory to
the reproducer works on any question; `harness/questions/` gathers them."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from generators.graph import Graph, Node
from generators.graphs import PLAIN, Case, Style
from generators.inputs import Arrays
from generators.ops import DRAWN, STEPPED_OPS
from harness.backends import TARGETS, Target, probe
from harness.backends.target.target import types_listed
from harness.backends.target.text import swapped
from oracles.arithmetic.fast_math import Arithmetic
from oracles.judge.compare import Expected
from oracles.judge.outcome import Outcome, Rejected, Value
from oracles.judge.verdict import Observation, Verdict, judge


@dataclass(frozen=True)
class Question:
    """name:        of the oracle, as findings and known issues carry it
    expect:      what every run of a case is judged against
    program:     the text that a target runs for a graph
    unsupported: why a target cannot run it, or None; every reason was written down by somebody
    arrays:      what the program is given, by name of INPUTS and PARAMETERS
    prepare:     the case that is examined in place of a drawn one
    refusal:     why an exception is a documented refusal of what this question asks for, or None
    inherits:    questions whose known issues hold here, too: a fault of an operator shows in all that runs it
    traceable:   outputs are values of the graph, so that any node can be made one and looked at
    style:       what its cases are made of
    concerns:    is it worth asking about this operator?
    executed:    the graph that runs in place of a drawn one: the same names, other dtypes
    resizes:     are there runs at other sizes than the graph's, 0 among them?
    expect_under: `expect` of a target whose arithmetic has rules of its own; without it such targets are not asked
    observe:     for programs that return what they computed on the way: each step judged given the observed one
                 before it. Which outputs there are is known only then, so that the program says OUTPUTS = []
    targets:     what can be asked, by name
    joins:       cases of which this is the same can be parts of one program; None: a case has one of its own
    worth:       is anything of a case compared? The plan runs no other
    large:       are large cases worth it? What is expected has to take little longer than the program
    apart:       of programs that write: their nodes, each on leaves that hold what its operands hold when it runs
    taken_out:   of programs that write: the rest of a case when these statements are gone; None: nothing is left to run
    facts:       what a `where` of this question's entries may name of a node, beside what the node is given
    named:       the names of these facts
    parts:       of a case and the number of an output: the case that the output is the result of, or those of its rows
    fills:       with how many sets of arrays a program of the plan runs: fewer where what is expected takes long
    symptom:     what a wrong output is a sign of, where that is no wrong value"""

    name: str
    expect: Callable[[Case], Expected]
    program: Callable[[Target, Graph], str] = Target.program
    unsupported: Callable[[Target, Graph], str | None] = Target.unsupported
    arrays: Callable[[Case], Arrays] = lambda case: case.arrays
    prepare: Callable[[Case], Case] = lambda case: case
    refusal: Callable[[Target, Rejected], str | None] = lambda target, outcome: None
    inherits: tuple[str, ...] = ()
    traceable: bool = False
    style: Style = PLAIN
    concerns: Callable[[str], bool] = lambda operator: True
    executed: Callable[[Graph], Graph] = lambda graph: graph
    resizes: bool = False
    expect_under: Callable[[Case, Arithmetic], Expected] | None = None
    observe: Callable[[Target, Value], Observation] | None = None
    targets: Mapping[str, Target] = field(default_factory=lambda: TARGETS, hash=False)
    joins: Callable[[Graph], str | None] = lambda graph: ""
    apart: Callable[[Case], Case] | None = None
    taken_out: Callable[[Case, Sequence[Node]], Case | None] = lambda case, nodes: None
    facts: Callable[[Graph, Node], Mapping[str, bool]] = lambda graph, node: {}
    named: tuple[str, ...] = ()
    parts: Callable[[Case, int], Sequence[Case]] = lambda case, place: (case,)
    fills: int = 8
    symptom: str = ""
    worth: Callable[[Case], bool] = lambda case: True
    large: bool = False

    def expected(self, target: Target, case: Case) -> Expected:
        """What a run of the case on this target is judged against."""
        return (
            self.expect_under(case, target.arithmetic) if target.arithmetic and self.expect_under else self.expect(case)
        )

    def judge(self, target: Target, expected: Expected, outcome: Outcome) -> Verdict:
        """What is made of an outcome."""
        if self.observe and isinstance(outcome, Value):
            return self.observe(target, outcome).verdict
        verdict = judge(expected, outcome)
        if self.symptom and verdict.status == "mismatch" and verdict.discrepancy:
            return replace(verdict, discrepancy=replace(verdict.discrepancy, symptom=self.symptom))
        return verdict

    def why_not(self, target: Target, graph: Graph) -> str | None:
        """Why a target is not asked, or None."""
        if target.arithmetic and not self.expect_under and target.arithmetic.concerns(graph):
            return f"what {target.arithmetic.name} allows is derived for values of graphs only"
        if target.arithmetic and target.arithmetic.reassociates:
            steps = next((node.op for node in graph.nodes if node.op in STEPPED_OPS), None)
            if steps:
                return f"{steps}: what reassociation may do between its steps is not derived"
        why = self.unsupported(target, graph)
        if why or not (target.arithmetic and target.arithmetic.casts):
            return why
        after = target.arithmetic.casts(graph, {})
        return after if isinstance(after, str) else self.unsupported(target, after.graph)

    @property
    def drawn(self) -> tuple[str, ...]:
        """Operators that its cases are drawn from."""
        return tuple(name for name in DRAWN if self.concerns(name))

    @property
    def oracles(self) -> tuple[str, ...]:
        """Names of the oracles whose known issues explain a discrepancy of this question."""
        return (self.name, *self.inherits)


@dataclass(frozen=True)
class Reproduction:
    """All that a person needs to run a case again: the text that ran and the modules that it needs, what it was given,
    what a correct run returns, and with which versions it ran. observed: is that known for one run only, whose outputs
    may be others in another version? device: that it needs, as of `Target`."""

    program: str
    modules: tuple[str, ...]
    arrays: Arrays
    expected: Expected
    versions: str
    observed: bool = False
    device: str = "cpu"


def reproduction_of(question: Question, target: Target, case: Case, outcome: Outcome | None = None) -> Reproduction:
    """The case as this question has it run on the target. outcome: of a run, for a question that judges by it."""
    program = question.program(target, case.graph)
    versions = ", ".join(f"{name} {version}" for name, version in probe.versions([target]).items())
    if target.environment:
        versions += f" (environment {target.environment})"
    arrays = question.arrays(case)
    modules = tuple(dict.fromkeys((*target.modules, *_imported(program))))
    if not question.observe:
        return Reproduction(program, modules, arrays, question.expected(target, case), versions, device=target.device)
    expected = Expected((), (), ())
    if isinstance(outcome, Value):
        expected = question.observe(target, outcome).expected
        program = swapped(program, ("OUTPUTS = []", f"OUTPUTS = {types_listed(expected.types)}"))
    return Reproduction(program, modules, arrays, expected, versions, observed=True, device=target.device)


def _imported(program: str) -> list[str]:
    """What the text imports at its top beside numpy: all that a worker does not import for it."""
    named = re.findall(r"^(?:import|from) (\w+)", program, re.MULTILINE)
    return [name for name in named if name not in sys.stdlib_module_names and name != "numpy"]

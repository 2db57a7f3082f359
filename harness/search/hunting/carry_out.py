"""One step of the plan: its cases run together, judged one by one, counted, and what is wrong seen to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from generators.graphs import Case
from generators.union import Filled
from harness.backends import TARGETS, Target
from harness.search.campaign import Campaign
from harness.search.coverage import dtype_of
from harness.search.hunting.plan import Step, member
from harness.search.hunting.silence import Silence, kind_of
from harness.search.hunting.together import Judged, Together
from oracles.judge.compare import Expected
from oracles.judge.discrepancy import SILENT, Discrepancy
from oracles.judge.verdict import Verdict

JOINED = 32
"""Cases of one program, at most: more cost some compilers more than they save."""
USUAL = ("float32", "float64", "int64", "int32", "bool")
"""What most targets take; cases of other dtypes, which may be refused, stand beside each other."""
NOTHING = Expected((), (), ())
DEADLY = tuple(symptom for symptom in SILENT if symptom != "rejected")
"""Symptoms that cost a worker."""

Pursue = Callable[[Campaign, Target, Case, Discrepancy], None]


@dataclass
class Carrier:
    """Carries out steps. pursue: sees to what is wrong; silence: what returned nothing"""

    pursue: Pursue
    silence: Silence = field(default_factory=Silence)

    def carry_out(self, campaign: Campaign, step: Step) -> Iterator[Verdict]:
        """The verdict of each case of a step, one after the other; those that the target refuses first."""
        lab, target = campaign.lab, step.lane.target
        question, runnable = lab.question, []
        for operator, turn in step.takes:
            one = member(question, operator, turn)
            if question.why_not(target, one.graph):
                yield self._counted(campaign, target, one.case(0), NOTHING, Verdict("unsupported"))
                continue
            fills = tuple(arrays for arrays in one.fills if question.worth(Case(one.graph, arrays)))
            if fills:
                runnable.append(Filled(one.graph, fills))
            else:
                yield self._counted(campaign, target, one.case(0), NOTHING, Verdict("undetermined"))
        together = Together(
            lab,
            target,
            partial(campaign.known, target),
            lambda case, found: len(case.graph.nodes) == 1 and campaign.stored(target, case, found) is not None,
            campaign.unconfirmed,
            self.silence,
        )
        for batch in self._batches(campaign, target, runnable):
            for one in together.judge(batch):
                yield self._seen_to(campaign, target, one)

    def _batches(self, campaign: Campaign, target: Target, members: Sequence[Filled]) -> Iterator[list[Filled]]:
        """Those that go into one program. What may be rejected, by what is known, would take the others with it, and
        has programs apart: most of it returns something after all; what may end the worker has one of its own. What a
        part of the target refuses elsewhere is doubted."""
        alike: dict[tuple[str, bool], list[Filled]] = {}
        rejected, deadly = (campaign.excuses.silent(target, some) for some in (("rejected",), DEADLY))
        parts = [TARGETS[name] for name in target.inherits if name in TARGETS]
        for one in members:
            key = campaign.lab.question.joins(one.graph)
            if any(part.refused(one.graph) for part in parts):
                self.silence.doubted.add(kind_of(campaign.lab.question, target, one.graph))
            if key is None or deadly.nearby(target, one.graph):
                yield [one]
            else:
                alike.setdefault((key, rejected.nearby(target, one.graph)), []).append(one)
        for group in alike.values():
            group.sort(key=lambda one: dtype_of(one.graph, one.graph.nodes[0]) not in USUAL)
            for first in range(0, len(group), JOINED):
                yield group[first : first + JOINED]

    def _seen_to(self, campaign: Campaign, target: Target, one: Judged) -> Verdict:
        discrepancy = one.verdict.discrepancy
        if discrepancy and not one.known:
            self.pursue(campaign, target, one.case, discrepancy)
        return self._counted(campaign, target, one.case, one.expected, one.verdict)

    def _counted(self, campaign: Campaign, target: Target, case: Case, expected: Expected, verdict: Verdict) -> Verdict:
        campaign.lab.coverage[campaign.lab.question.name].add(case.graph, expected, {target.label: verdict})
        return verdict

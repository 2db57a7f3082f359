"""From a disagreement to a finding: who is to blame, is it known, how small does it get, who else agrees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from generators.graph import Node
from generators.graphs import Case
from generators.retype import float64_twin
from harness.backends import Target, probe
from harness.execute import machine
from harness.execute.pool import OutOfTime
from harness.findings.known.issues import KnownIssue
from harness.findings.store import Finding, Store, fingerprint
from harness.questions import QUESTIONS
from harness.questions.question import Question
from harness.search.blame import culprit, guilty_pass, writing
from harness.search.blame.alike import as_wrong
from harness.search.blame.excuses import ELEMENTWISE, Excuses, may_show
from harness.search.blame.guilty_pass import GuiltyPass, Shown
from harness.search.blame.ordinary import with_ordinary_numbers
from harness.search.laboratory import Examination, Laboratory
from harness.search.reduce import Budget, reduce, size
from oracles.judge.compare import Expected
from oracles.judge.discrepancy import SILENT, Discrepancy
from oracles.judge.outcome import Outcome
from oracles.judge.verdict import Verdict, normalized


@dataclass(frozen=True)
class Condition:
    """What a case has to show beside its discrepancy to be a finding. text: in words; part of the fingerprint."""

    text: str
    holds: Callable[[Case], bool]


@dataclass
class Campaign:
    """One search: its laboratory, the targets whose votes are asked for, where findings go, what is known.

    excused:   discrepancies by id of the known issue that explains them
    unconfirmed: crashes, hangs and rejections that are no findings, by the reason
    latest:    what was stored last
    reduction: what minimising one finding may cost
    confirmations: runs of a minimised finding in fresh processes
    condition: of all findings, if any
    """

    lab: Laboratory
    targets: Sequence[Target]
    store: Store
    issues: Sequence[KnownIssue] = ()
    excused: Counter[str] = field(default_factory=Counter)
    unconfirmed: Counter[str] = field(default_factory=Counter)
    latest: Finding | None = None
    reduction: Callable[[], Budget] = Budget
    confirmations: int = 2
    condition: Condition | None = None

    def with_question(self, question: Question) -> Campaign:
        """The same search with another question."""
        return replace(self, lab=replace(self.lab, question=question))

    @cached_property
    def excuses(self) -> Excuses:
        """What is known, for this search's question."""
        return Excuses(self.lab, self.issues)

    def unexplained(self, target: Target, case: Case, discrepancy: Discrepancy) -> tuple[Case, Discrepancy] | None:
        """What of a discrepancy no known issue explains; None where all of it is known.

        Each node is run alone. One that is wrong by itself in a way that is not known is what remains. If all
        such nodes are known, those that may show the symptom are taken out (their results become inputs) and the rest
        is run again, so that a known bug hides nothing behind it. Where no node shows it by itself, known issues have
        to cover every node of the graph; but what an entry covers that shows only `together` with other nodes is taken
        out, and so is what a known crash covers, since damage to memory shows only sometimes, and anywhere."""
        excuses = self.excuses
        if not excuses.nearby(target, case.graph):
            return case, discrepancy
        if self.lab.question.apart:
            return self._statements_unexplained(target, case, discrepancy, self.lab.question.apart(case))
        used: set[str] = set()
        alone = []
        for found in culprit.blame(self.lab, target, case) or self._inherited(target, case):
            explained = excuses.explain(target, found)
            if explained.left:
                return found.case, explained.left
            if may_show(discrepancy.symptom, found.discrepancy.symptom):
                alone.append(found.node)
                used.update(issue.id for issue in explained.used)
        guilty = alone or self._covered(target, case, discrepancy, used)
        if guilty is None:
            return case, discrepancy
        self.excused.update(used)
        rest = culprit.without(case, guilty) if guilty else None
        remaining = self.verdict(target, rest).discrepancy if rest else None
        return self.unexplained(target, rest, remaining) if rest and remaining else None

    def _statements_unexplained(
        self, target: Target, case: Case, discrepancy: Discrepancy, apart: Case
    ) -> tuple[Case, Discrepancy] | None:
        """The same of a program that writes. apart: the nodes that run, on what they are given then. Where none of them
        shows it by itself, statements that are known are taken out, and the rest is run again."""
        alone = writing.known_alone(self.excuses, target, apart, discrepancy)
        known = {} if alone else writing.known_statements(self.excuses, target, case, discrepancy)
        self.excused.update({*alone, *(issue.id for issue in known.values())})
        if alone or not known:
            return None if alone else (case, discrepancy)
        rest = self.lab.question.taken_out(case, [*known])
        remaining = self.verdict(target, rest).discrepancy if rest else None
        return self.unexplained(target, rest, remaining) if rest and remaining else None

    def _covered(self, target: Target, case: Case, discrepancy: Discrepancy, used: set[str]) -> list[Node] | None:
        """Nodes that known issues make responsible for what no node shows alone; none of them in particular where
        issues cover all; None where they do not. used: receives the ids of the issues."""
        values = culprit.values_of(case)
        known = {n: self.excuses.together(target, case.graph, n, discrepancy, values) for n in case.graph.nodes}
        found = {n: i for n, i in known.items() if i and (i.together or discrepancy.symptom == "crash")}
        if not found and None in known.values():
            return None
        used.update(issue.id for issue in (found or known).values() if issue)
        return list(found)

    def known(self, target: Target, case: Case, discrepancy: Discrepancy, expected: Expected, outcome: Outcome) -> bool:
        """Is all that a case of one node has shown known? It is counted then, and need not be shown again."""
        if len(case.graph.nodes) > 1:
            return False
        explained = self.excuses.explain(
            target, culprit.Culprit(next(iter(case.graph.nodes)), case, discrepancy, expected, outcome)
        )
        if explained.left is None:
            self.excused.update({issue.id for issue in explained.used})
        return explained.left is None

    def stored(self, target: Target, case: Case, discrepancy: Discrepancy) -> Finding | None:
        """The finding that this was before, of this target, whatever the passes to blame."""
        alike = self.store.alike(self._fingerprint(target, case, discrepancy, ()))
        return next((finding for finding in alike if target.name in finding.targets), None)

    def _inherited(self, target: Target, case: Case) -> list[culprit.Culprit]:
        """Nodes that are wrong alone for a question that this one inherits from, in a way that is known: a node alone
        may be nothing that this question can be asked of. None where programs return what they computed on the way: no
        other question can read that."""
        if self.lab.question.observe:
            return []
        found = []
        for name in self.lab.question.inherits:
            blamed = culprit.blame(self.with_question(QUESTIONS[name]).lab, target, case)
            found += [one for one in blamed if self.excuses.explain(target, one).left is None]
        return found

    def fails(self, target: Target, like: Discrepancy) -> Callable[[Case], bool]:
        """Does a case fail on the target in the same way, and meet the condition?"""

        def predicate(case: Case) -> bool:
            found = self._left(target, case)
            alike = found is not None and found.symptom == like.symptom and normalized(found) == normalized(like)
            return alike and self._meets(case)

        return predicate

    def _meets(self, case: Case) -> bool:
        return self.condition is None or self.condition.holds(case)

    def verdict(self, target: Target, case: Case) -> Verdict:
        """One case on one target, crashes taken at face value."""
        return self.lab.judge(case, [target], confirm=False).verdicts[target.name]

    def _left(self, target: Target, case: Case) -> Discrepancy | None:
        """What is wrong with a case; of one node, without those elements that known issues explain: else reduction
        would go on to what is known."""
        examination = self.lab.judge(case, [target], confirm=False)
        found = examination.verdicts[target.name].discrepancy
        if found is None or len(case.graph.nodes) > 1 or found.symptom not in ELEMENTWISE:
            return found
        expected = self.lab.question.expected(target, case)
        one = culprit.Culprit(next(iter(case.graph.nodes)), case, found, expected, examination.outcomes[target.name])
        return self.excuses.explain(target, one).left

    def met(self, target: Target, case: Case, discrepancy: Discrepancy) -> Finding | None:
        """What was stored of it before, counted once more; None where it is new."""
        stored = self.stored(target, case, discrepancy)
        return self.store.count_again(stored.fingerprint, target.name) if stored else None

    def keep(self, target: Target, case: Case, discrepancy: Discrepancy) -> Finding:
        """Store it as it was met, to be investigated later."""
        return self._save(self._own(target, self._finding(target, case, discrepancy), discrepancy), target, case)

    def investigate(
        self, target: Target, case: Case, discrepancy: Discrepancy, kept: Finding | None = None
    ) -> Finding | None:
        """Fold a duplicate into what is stored, or blame, reduce, confirm, ask for votes and store. The case is
        stored before it is reduced, so that an interruption loses nothing, and is the finding where time is over
        before it is small. None where it is `unconfirmed`, or the reduced case turns out to be known: an issue of
        several nodes together shows only once the others are gone. Raises OutOfTime where it could not be stored.
        kept: what is stored of it, which goes where the finding is another one or none."""
        self.latest = kept
        try:
            finding = self._investigated(target, case, discrepancy, kept)
        except OutOfTime:
            if self.latest is None:
                raise
            finding = self.latest
        if kept and (finding is None or finding.fingerprint != kept.fingerprint):
            self.store.drop(kept.fingerprint)
        return finding

    def _investigated(
        self, target: Target, case: Case, discrepancy: Discrepancy, kept: Finding | None
    ) -> Finding | None:
        blamed, symptom = culprit.blame(self.lab, target, case), discrepancy.symptom
        guilty = [g for g in blamed if may_show(symptom, g.discrepancy.symptom) and self._meets(g.case)]
        if guilty:
            smallest = min(guilty, key=lambda g: (g.discrepancy.symptom != symptom, size(g.case)))
            case, discrepancy = smallest.case, smallest.discrepancy
        case, discrepancy = self._plainest(target, case, discrepancy)
        fails = self.fails(target, discrepancy)
        if discrepancy.symptom in SILENT and (why := self._doubt(target, case, discrepancy, fails)):
            self.unconfirmed[why] += 1
            return None
        first = self._own(target, self._finding(target, case, discrepancy), discrepancy)
        same = kept is not None and kept.fingerprint == first.fingerprint
        mine = same or self.store.get(first.fingerprint) is None
        known = self._duplicate(target, case, discrepancy) if guilty and not same else None
        if known:
            return known
        if mine:  # a stored one of the same name may be another pass's
            self._save(first, target, case)
        if self.confirmations and discrepancy.symptom not in SILENT and not self._repeat(target, fails, case, 1):
            # it comes and goes: kept as it is, since nothing can tell which smaller case still fails
            return self._save(replace(first, tried=1), target, case)
        small = reduce(case, fails, self.reduction())
        discrepancy = self._left(target, small) or discrepancy
        if self.unexplained(target, small, discrepancy) is None:
            if mine:
                self.store.drop(first.fingerprint)
            return None
        guilt = self.guilty_pass(target, small, discrepancy)
        final = self._own(target, self._finding(target, small, discrepancy, guilt), discrepancy, small)
        if final.fingerprint != first.fingerprint:
            if mine:
                self.store.drop(first.fingerprint)
            duplicate = self.store.count_again(final.fingerprint, target.name)
            if duplicate:
                return duplicate
        self._save(final, target, small)
        votes = self._votes(small)
        twin = self._twin(target, small)
        wrong = culprit.diverging(self.lab, target, small) if len(small.graph.nodes) > 1 else small.graph.nodes
        finding = replace(
            final,
            votes={name: verdict.status for name, verdict in votes.verdicts.items()},
            twin=twin,
            diverging=str(wrong[0]) if wrong else None,
            reproduced=self._repeat(target, fails, small, self.confirmations),
            tried=self.confirmations,
        )
        return self._save(finding, target, small)

    def _doubt(self, target: Target, case: Case, discrepancy: Discrepancy, fails: Callable[[Case], bool]) -> str | None:
        """Why a crash, hang or rejection may be the machine's, or None: it comes again in a fresh process, and the
        machine is well."""
        if not self._repeat(target, fails, case, 1):
            return f"a {discrepancy.symptom} of {target.name} did not come again in a fresh process"
        return machine.trouble(discrepancy.message, self.lab.pool.temporary, self.store.root.absolute())

    def _repeat(self, target: Target, fails: Callable[[Case], bool], case: Case, times: int) -> int:
        """How many of so many runs in fresh processes fail."""
        count = 0
        for _ in range(times):
            self.lab.pool.restart_worker(*target.worker)
            count += fails(case)
        return count

    def guilty_pass(self, target: Target, case: Case, discrepancy: Discrepancy) -> GuiltyPass | None:
        """Which pass of the target's compiler makes the case fail, as two more runs in fresh processes confirm. None
        where the target has none that can be left out."""
        if not target.switches:
            return None
        run = self._leaving_out(target, case, discrepancy)
        guilt = guilty_pass.find(target.switches.passes, run, self.reduction().spend)
        for off, awaited in ((), "same"), (guilt.names, "right"):
            if guilt.names:
                self.lab.pool.restart_worker(*target.worker)
                guilt = guilt if run(off) == awaited else GuiltyPass((), "unknown, it comes and goes")
        return guilt

    def fewest_left_out(self, target: Target, case: Case, like: Discrepancy) -> Target:
        """The target with as many of its passes as it can have and still make the case fail in this way."""
        whole, budget = target.complete(), self.reduction()
        run = self._leaving_out(whole, case, like)
        if not target.off or run(()) == "same":
            return whole
        return whole.without(guilty_pass.smallest(target.off, lambda off: budget.spend() and run(off) == "same"))

    def _leaving_out(self, target: Target, case: Case, like: Discrepancy) -> Callable[[Collection[str]], Shown]:
        """The case on the target without some of its passes: is that right, does it fail in the same way?"""

        def run(off: Collection[str]) -> Shown:
            found = self._left(target.without(off), case)
            if found is None:
                return "right"
            return "same" if (found.symptom, normalized(found)) == (like.symptom, normalized(like)) else "other"

        return run

    def _duplicate(self, target: Target, case: Case, discrepancy: Discrepancy) -> Finding | None:
        """The stored finding that this is, counted once more: of this name, as wrong, and by the same pass."""
        passes = target.switches.passes if target.switches else ()
        run = self._leaving_out(target, case, discrepancy)
        for finding in self.store.alike(self._fingerprint(target, case, discrepancy, ())):
            if not set(finding.passes) <= set(passes) or not self._alike(target, finding, discrepancy):
                continue  # those of another compiler of the framework, or of another fault
            asked = finding.passes or (passes if finding.tried > 1 else ())
            mends = bool(asked) and run(asked) == "right"
            if mends == bool(finding.passes):
                return self.store.count_again(finding.fingerprint, target.name)
        return None

    def _own(self, target: Target, finding: Finding, like: Discrepancy, small: Case | None = None) -> Finding:
        """A finding under its name, or with the target's behind it where that is another target's, which need not be
        of the same fault: it is where each target fails with the other's reduced case, too, in the same way, and is as
        wrong with its own."""
        there = self.store.get(finding.fingerprint)
        if there is None or target.name in there.targets:
            return finding
        mine = {one.name: one for one in self.targets}
        other = mine.get(there.target) or self.lab.question.targets.get(there.target)
        stored = self.store.case(finding.fingerprint)
        if small and other and stored:
            both = self.fails(target, like)(stored) and self.fails(other, like)(small)
            if both and (like.symptom not in ELEMENTWISE or as_wrong(self.lab, target, other, small)):
                return finding
        return replace(finding, fingerprint=f"{finding.fingerprint}-{target.name}")

    def _alike(self, target: Target, finding: Finding, like: Discrepancy) -> bool:
        """Is what is stored wrong on this target as it was where it was found, element by element? Another one of the
        framework may have another fault of the same operators."""
        stored = None if target.name in finding.targets else self.store.case(finding.fingerprint)
        if stored is None or (found := self._left(target, stored)) is None:
            return stored is None
        return normalized(found) == normalized(like) if like.symptom in SILENT else found.message == finding.message

    def _plainest(self, target: Target, case: Case, discrepancy: Discrepancy) -> tuple[Case, Discrepancy]:
        """With ordinary numbers where these show a wrong value that is not known, too."""
        for candidate in with_ordinary_numbers(case) if discrepancy.symptom == "special" else ():
            found = self._left(target, candidate)
            if found and found.symptom == "value" and self._meets(candidate):
                return self.unexplained(target, candidate, found) or (case, discrepancy)
        return case, discrepancy

    def _fingerprint(self, target: Target, case: Case, discrepancy: Discrepancy, passes: tuple[str, ...]) -> str:
        said = f"{self.lab.question.name} {self.condition.text}" if self.condition else self.lab.question.name
        return fingerprint(said, target.framework, case.graph.operators, discrepancy, passes)

    def _finding(
        self, target: Target, case: Case, discrepancy: Discrepancy, guilt: GuiltyPass | None = None
    ) -> Finding:
        passes = guilt.names if guilt else ()
        return Finding(
            fingerprint=self._fingerprint(target, case, discrepancy, passes),
            oracle=self.lab.question.name,
            symptom=discrepancy.symptom,
            message=discrepancy.message,
            target=target.name,
            targets=(target.name,),
            operators=case.graph.operators,
            nodes=len(case.graph.nodes),
            diverging=None,
            votes={},
            versions=probe.versions([target]),
            condition=self.condition.text if self.condition else "",
            passes=passes,
            guilty_pass=guilt.text if guilt else None,
        )

    def _save(self, finding: Finding, target: Target, case: Case) -> Finding:
        outcome = self.lab.returned(target, case, finding.symptom)
        self.latest = self.store.save(finding, self.lab.question, target, case, outcome)
        return self.latest

    def _votes(self, case: Case) -> Examination:
        """The case on every target of the campaign."""
        return self.lab.judge(case, self.targets, confirm=False)

    def _twin(self, target: Target, case: Case) -> str | None:
        """The status of the same case in float64 on the same target; None where it has nothing narrower, or
        what runs is quantised."""
        twin = None if self.lab.question.observe else float64_twin(case)
        return self.verdict(target, twin).status if twin else None


def operators_for(target: Target, names: Sequence[str]) -> list[str]:
    """Those of the operators that the target can express for some types."""
    return [name for name in names if target.expresses(name)]

"""Many cases on a target in one program: each judged on its own, what fails taken apart and shown alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from generators.graphs import Case
from generators.union import Filled, place, union
from harness.backends import Target
from harness.search.blame.excuses import ELEMENTWISE
from harness.search.hunting.runs import run
from harness.search.hunting.silence import MOSTLY, OFTEN, Kind, Silence, kind_of
from harness.search.hunting.suspects import suspects
from harness.search.laboratory import Laboratory
from oracles.judge.compare import Expected
from oracles.judge.discrepancy import SILENT, Discrepancy
from oracles.judge.outcome import Outcome, Timeout, Unsupported, Value
from oracles.judge.verdict import Verdict, judge

SLOW = 4
"""A program of several cases that is given up is a finding where they take less than a quarter of that time one by
one: a compiler takes longer for more, and where that is all, nothing is wrong."""


@dataclass(frozen=True)
class Judged:
    """A case and what came of it. company: it holds several independent cases, since it takes all of them to show
    this; known: all that is wrong with it is, or was seen with other arrays, so that it was not shown alone."""

    case: Case
    expected: Expected
    verdict: Verdict
    company: bool = False
    known: bool = False


@dataclass
class Together:
    """Judges the members of a batch on one target.

    known:       is what a case returned wrong in known ways only?
    stored:      is it a finding already?
    unconfirmed: what several cases showed together once, and never again, by the reason
    silence:     what returns nothing so often that it has a program of its own"""

    lab: Laboratory
    target: Target
    known: Callable[[Case, Discrepancy, Expected, Outcome], bool] = lambda case, discrepancy, expected, outcome: False
    stored: Callable[[Case, Discrepancy], bool] = lambda case, discrepancy: False
    unconfirmed: Counter[str] = field(default_factory=Counter)
    silence: Silence = field(default_factory=Silence)

    def judge(self, members: Sequence[Filled]) -> list[Judged]:
        """Every member with every set of arrays, and then what shows only in company. A member that returns nothing is
        judged with the first set that shows it alone."""
        if len(members) == 1:
            return self._single(members[0])
        alone: list[Judged] = []
        rest: list[Filled] = []
        for member in members:  # each tells something of those behind it
            if self.silence.share(self._kind(member)) > OFTEN:
                alone += self._single(member)
            else:
                rest.append(member)
        if alone:
            return [*alone, *self.judge(rest)] if rest else alone
        joined = union(members)
        if self.lab.question.why_not(self.target, joined.graph):  # such as outputs of two dtypes in one sum
            return [one for half in _halves(members) for one in self.judge(half)]
        started = self._cpu()
        outcome = run(self.lab, self.target, joined)
        spent = self._cpu() - started
        found = self._each(members, joined, outcome)
        if found is not None:
            for member in members:
                self.silence.note(self._kind(member), nothing=False)
            return found
        started = self._cpu()
        apart = self._apart(members, joined, outcome)
        if any(one.verdict.discrepancy and _failed(one) for one in apart):
            return apart
        if _refused(outcome, apart):
            return apart
        if isinstance(outcome, Timeout) and SLOW * (self._cpu() - started) > max(spent, outcome.seconds):
            self.unconfirmed["several cases together took too long, and not one by one"] += 1
            return apart
        return [*apart, *self._company(joined)]

    def _apart(self, members: Sequence[Filled], joined: Filled, outcome: Outcome) -> list[Judged]:
        """What failed together, in parts: who is suspected alone and the rest together; by halves where nobody is, or
        where it was not they."""
        suspected = suspects(outcome, self.lab.question.program(self.target, joined.graph), len(members))
        alone = [one for number in suspected for one in self._single(members[number])]
        rest = [member for number, member in enumerate(members) if number not in suspected]
        parts = [rest] if any(map(_failed, alone)) or len(rest) == 1 else _halves(rest)
        return [*alone, *(one for part in parts for one in self.judge(part))]

    def _single(self, member: Filled) -> list[Judged]:
        """One member in programs of its own."""
        found = self._sets(member)
        self.silence.note(self._kind(member), nothing=_failed(found[0]))
        return found

    def _sets(self, member: Filled) -> list[Judged]:
        """With all sets of arrays at once, unless such members mostly return nothing: then with the first one before
        the others. Sets that return nothing together are run one by one."""
        shown: list[Judged] = []
        rest = member
        if len(member.fills) == 1 or self.silence.share(self._kind(member)) > MOSTLY:
            shown, rest = [self._alone(member.case(0))], Filled(member.graph, member.fills[1:])
            if _failed(shown[0]) or not rest.fills:
                return shown
        joined = union([rest])
        outcome = run(self.lab, self.target, joined)
        found = self._each([rest], joined, outcome)
        if found is not None:
            return [*shown, *found]
        for k in range(len(rest.fills)):
            shown.append(self._alone(rest.case(k)))
            if _failed(shown[0]) or (shown[-1].verdict.discrepancy and _failed(shown[-1])):
                return shown
        if not _refused(outcome, shown):
            self.unconfirmed["a program failed in a later run, and not by itself"] += 1
        return shown

    def _each(self, members: Sequence[Filled], joined: Filled, outcome: Outcome) -> list[Judged] | None:
        """What each member returned with each set of arrays. None where the run as a whole failed."""
        if not isinstance(outcome, Value):
            return None
        question, target = self.lab.question, self.target
        with self.lab.clock("reference"):
            expected = [question.expected(target, joined.case(k)) for k in range(len(joined.fills))]
        if len(outcome.outputs) != sum(len(one.names) for one in expected):
            return None
        found, first = [], 0
        seen: set[tuple[int, str, str]] = set()
        for k, one in enumerate(expected):
            outputs = outcome.outputs[first : first + len(one.names)]
            first += len(one.names)
            owners = [place(name) for name in one.names]
            for number, member in enumerate(members):
                mine = [i for i, (owner, _) in enumerate(owners) if owner == number]
                if k >= len(member.fills) or not mine:
                    continue
                names, types, values = zip(*((owners[i][1], one.types[i], one.values[i]) for i in mine), strict=True)
                part = Expected(names, types, values, one.said)
                with self.lab.clock("judge"):
                    own = Value(tuple(outputs[i] for i in mine))
                    verdict = judge(part, own)
                shown = Judged(member.case(k), part, verdict)
                if wrong := verdict.discrepancy:
                    key = number, wrong.symptom, wrong.message
                    shown = replace(shown, known=True) if key in seen else self._confirmed(shown, own, joined.case(k))
                    if wrong.symptom not in ELEMENTWISE and shown.verdict.discrepancy == wrong:
                        seen.add(key)  # whatever the values are
                found.append(shown)
        return found

    def _confirmed(self, shown: Judged, outcome: Outcome, whole: Case) -> Judged:
        """A wrong result, shown by the case alone; else by all of them with these arrays; else it is none."""
        discrepancy = shown.verdict.discrepancy
        assert discrepancy
        if self.known(shown.case, discrepancy, shown.expected, outcome):
            return replace(shown, known=True)
        if self.stored(shown.case, discrepancy):
            return shown
        alone = self._alone(shown.case)
        if alone.verdict.discrepancy:
            return alone
        together = self._alone(whole)
        if together.verdict.discrepancy:
            return Judged(whole, together.expected, together.verdict, company=True)
        self.unconfirmed["a result of several cases together was wrong once, and not again"] += 1
        return alone

    def _company(self, joined: Filled) -> list[Judged]:
        """What fails as a whole and in no part."""
        for k in range(len(joined.fills)):
            shown = self._alone(joined.case(k))
            if shown.verdict.discrepancy:
                return [Judged(shown.case, shown.expected, shown.verdict, company=True)]
        self.unconfirmed["several cases together failed once, and not again"] += 1
        return []

    def _alone(self, case: Case) -> Judged:
        found = self.lab.judge(case, [self.target])
        return Judged(case, found.expected, found.verdicts[self.target.name])

    def _kind(self, member: Filled) -> Kind:
        return kind_of(self.lab.question, self.target, member.graph)

    def _cpu(self) -> float:
        return self.lab.seconds[f"run:{self.target.whole}"]


def _failed(one: Judged) -> bool:
    """Did a case return nothing, or another number of outputs? A program that holds it does so, too."""
    discrepancy = one.verdict.discrepancy
    return one.verdict.status == "unsupported" or bool(discrepancy and discrepancy.symptom in (*SILENT, "outputs"))


def _refused(outcome: Outcome, apart: Sequence[Judged]) -> bool:
    """Does a whole refuse what one of its parts refuses alone, in documented words? Nothing is wrong then."""
    return isinstance(outcome, Unsupported) and any(one.verdict.status == "unsupported" for one in apart)


def _halves(members: Sequence[Filled]) -> tuple[Sequence[Filled], Sequence[Filled]]:
    middle = len(members) // 2
    return members[:middle], members[middle:]

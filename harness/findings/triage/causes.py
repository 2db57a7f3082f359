"""Which faults have one cause. Two instances are folded by the first of these rules that holds, and each fold says by
which; what no rule folds stays apart, since two faults in one cause would be worse than one cause told twice.

1. *reference*: a reason says so of another entry: it begins with "As ID" or "A consequence of ID", or has "(as ID",
   ", as ID" or "ID, of further" in it. "See ID" and "Compare ID" are of relatives, which stay apart.
2. *thread*: the same upstream thread, framework and question, a symptom and an operator in common.
3. *message*: the same framework, question, symptoms and words (of entries the regular expression, of findings the
   message without what varies), and an operator in common.
4. *structure*: the same framework, symptoms, dtypes and conditions, the same operators in the smallest cases in the
   same order, and the same expression `where` with a size of the error in it (NaN and infinities tell too little).
5. *pass*: findings of one framework whose guilty passes and symptom are the same."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import combinations

from harness.findings.triage.instance import STATES, Instance
from harness.findings.triage.reach import LEVELS, Reach, reach_of
from harness.findings.triage.severity import SEVERITIES, severity_of
from harness.questions.forward import FORWARD
from oracles.judge.discrepancy import Discrepancy
from oracles.judge.verdict import normalized


@dataclass(frozen=True)
class Fold:
    """Two instances that have one cause, by id, the rule that says so, and its words for people."""

    first: str
    second: str
    rule: str
    why: str


@dataclass(frozen=True)
class Cause:
    """One fault: its instances, the one that stands for all first, and the folds that made one of them. related: ids
    that reasons name without saying that they are the same."""

    instances: tuple[Instance, ...]
    folds: tuple[Fold, ...] = ()
    related: tuple[str, ...] = ()

    @property
    def first(self) -> Instance:
        """The instance that stands for all."""
        return self.instances[0]

    @property
    def id(self) -> str:
        """Of the instance that stands for all."""
        return self.first.id

    @cached_property
    def severity(self) -> str:
        """The worst of its instances."""
        return min((severity_of(one.symptoms, one.reason) for one in self.instances), key=SEVERITIES.index)

    @cached_property
    def reaches(self) -> tuple[Reach, ...]:
        """Of its instances, in their order."""
        return tuple(reach_of(one) for one in self.instances)

    @property
    def reach(self) -> str:
        """The widest of its instances, one of LEVELS."""
        return min((reach.level for reach in self.reaches), key=LEVELS.index)

    @cached_property
    def state(self) -> str:
        """New where an instance is, and fixed only where all are; otherwise reported where one is."""
        states = {one.state for one in self.instances}
        for state in ("new", "by design", "reported", "known"):
            if state in states:
                return state
        return STATES[-1]

    @property
    def upstream(self) -> tuple[str, ...]:
        """The threads of its instances."""
        return tuple(dict.fromkeys(one.upstream for one in self.instances if one.upstream))

    @property
    def symptoms(self) -> tuple[str, ...]:
        """Of all instances."""
        return tuple(dict.fromkeys(symptom for one in self.instances for symptom in one.symptoms))

    @property
    def operators(self) -> tuple[str, ...]:
        """Globs of all instances."""
        return tuple(dict.fromkeys(glob for one in self.instances for glob in one.operators))


def causes_of(instances: Sequence[Instance]) -> tuple[Cause, ...]:
    """The causes of these instances, the worst first, then the widest, then by id. The same for any order of them."""
    ordered = sorted(instances, key=lambda one: one.id)
    by_id = {one.id: one for one in ordered}
    named = {one.id: mentions(one, by_id) for one in ordered}
    folds = [*_references(by_id, named), *_pairs(ordered)]
    group = {name: name for name in by_id}
    used: list[Fold] = []
    for fold in folds:
        first, second = _root(group, fold.first), _root(group, fold.second)
        if first != second:
            group[max(first, second)] = min(first, second)
            used.append(fold)
    members: dict[str, list[Instance]] = {}
    for one in ordered:
        members.setdefault(_root(group, one.id), []).append(one)
    found = [_cause(ones, used, named) for ones in members.values()]
    return tuple(sorted(found, key=lambda one: (SEVERITIES.index(one.severity), LEVELS.index(one.reach), one.id)))


def _cause(ones: Sequence[Instance], folds: Sequence[Fold], named: Mapping[str, Mapping[str, bool]]) -> Cause:
    """The instance that most others refer to stands for all: of several, one of the question `forward`, then the first
    by id."""
    inside = {one.id for one in ones}
    mine = tuple(fold for fold in folds if fold.first in inside)
    referred = [fold.second for fold in mine if fold.rule == "reference"]
    referring = {fold.first for fold in mine if fold.rule == "reference"}
    plain = ("", FORWARD.name)
    first = min(ones, key=lambda one: (one.id in referring, -referred.count(one.id), one.question not in plain, one.id))
    related = sorted({name for one in ones for name in named[one.id]} - inside)
    return Cause((first, *(one for one in ones if one is not first)), mine, tuple(related))


def mentions(instance: Instance, others: Iterable[str]) -> dict[str, bool]:
    """Ids of other instances that a reason names, and does it say that the cause is theirs?"""
    found: dict[str, bool] = {}
    for match in re.finditer(r"[a-z0-9]+(?:-[a-z0-9]+)+", instance.reason):
        name = match[0]
        if name in others and name != instance.id:
            before, after = instance.reason[: match.start()], instance.reason[match.end() :]
            same = bool(re.search(r"(^As (in )?|^A consequence of |[(,] ?as )$", before)) or (
                not before and after.startswith(", of further")
            )
            found[name] = found.get(name, False) or same
    return found


def _references(by_id: Mapping[str, Instance], named: Mapping[str, Mapping[str, bool]]) -> Iterable[Fold]:
    for name in by_id:
        for other, same in named[name].items():
            if same:
                yield Fold(name, other, "reference", f"its reason says that it is as {other}")


Rule = Callable[[Instance, Instance], str]
"""Why two instances have one cause, or ""."""


def _pairs(ordered: Sequence[Instance]) -> Iterable[Fold]:
    of: dict[str, list[Instance]] = {}
    for one in ordered:
        of.setdefault(one.framework, []).append(one)
    for rule in (same_thread, same_message, same_structure, same_pass):
        for ones in of.values():
            for first, second in combinations(ones, 2):
                if why := rule(first, second):
                    yield Fold(first.id, second.id, rule.__name__.removeprefix("same_"), why)


def same_thread(first: Instance, second: Instance) -> str:
    """Rule 2."""
    shared = set(first.symptoms) & set(second.symptoms)
    if not first.upstream or first.upstream != second.upstream or first.question != second.question or not shared:
        return ""
    operator = _common(first.operators, second.operators)
    return f"both are in {first.upstream}, of {operator}" if operator else ""


def same_message(first: Instance, second: Instance) -> str:
    """Rule 3."""
    said = words_of(first)
    if not said or said != words_of(second) or set(first.symptoms) != set(second.symptoms):
        return ""
    operator = _common(first.operators, second.operators) if first.question == second.question else ""
    return f"both say {said!r}, of {operator}" if operator else ""


def same_structure(first: Instance, second: Instance) -> str:
    """Rule 4."""
    facts = [
        (tuple(sorted(one.symptoms)), one.dtypes, one.conditions, one.where, one.case and one.case.graph.operators)
        for one in (first, second)
    ]
    if facts[0] != facts[1] or not first.case or not re.search(r"\d", re.sub(r"x\d+", "", first.where)):
        return ""
    operators = " + ".join(first.case.graph.operators)
    return f"the smallest case of both is {operators}, and both are wrong where {first.where}"


def same_pass(first: Instance, second: Instance) -> str:
    """Rule 5."""
    same = first.passes and first.passes == second.passes and first.symptoms == second.symptoms
    return f"the pass {', '.join(first.passes)} is to blame for both" if same else ""


def words_of(instance: Instance) -> str:
    """What is said where it shows, without what varies from case to case."""
    if instance.kind == "finding":
        return normalized(Discrepancy(instance.symptoms[0], instance.message))
    return instance.message


def _common(first: Sequence[str], second: Sequence[str]) -> str:
    """An operator, or glob, that both name; "" where there is none. "*" has one in common with itself alone."""
    pairs = [(a, b) for a in first for b in second if a == b or ("*" not in (a, b) and _overlap(a, b))]
    return min((min(pair, key=lambda glob: ("*" in glob, glob)) for pair in pairs), default="")


def _root(group: Mapping[str, str], name: str) -> str:
    while group[name] != name:
        name = group[name]
    return name


def _overlap(first: str, second: str) -> bool:
    return fnmatchcase(first, second) or fnmatchcase(second, first)

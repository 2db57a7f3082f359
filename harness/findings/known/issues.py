"""Known issues: what is already reported upstream or understood, so that it neither shrinks again nor hides what
is new. An entry matches a discrepancy by target, oracle, symptom, operator, dtype and framework version."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, Literal

from packaging.specifiers import SpecifierSet

from generators.graph import TensorType
from generators.ops import OPS
from harness.execute import machine
from harness.execute.globs import any_of
from harness.findings.known import entry
from harness.findings.known.predicate import LEAVES, Predicate, PredicateError
from harness.questions import QUESTIONS
from harness.questions.forward import FORWARD

EARLIER = "earlier_"
"""Stands before the names of attributes of the nearest node of the same operator above, in entries with `together`."""


def known_as(operator: str) -> tuple[str, ...]:
    """An operator, and the one that it follows from: the same kernels run behind a promotion, or a rule of paddings."""
    base = OPS[operator].base if operator in OPS else ""
    return (operator, *(known_as(base) if base else ()))


@dataclass(frozen=True)
class KnownIssue(entry.Entry):
    """targets, operators: globs; dtypes: of the culprit's result or first operand (none: any); empty: only where its
    result or an operand has size 0 ("parameter": an operand that is a parameter of the graph); constant: only where all
    its operands are parameters; together: shows only beside other nodes ("also": and alone);
    message: a regular expression found in the message (none: any); threads: shows only where each library has so many or more; cpu: shows
    only on processors with this feature, or with a ! before its name without it; seconds: for how long its own case is
    waited for (0: as for any other), for what never ends; first: is asked before others, which would explain the same;
    versions: of the framework; upstream: link or "not yet reported"."""

    targets: tuple[str, ...]
    symptoms: tuple[str, ...]
    operators: tuple[str, ...]
    reason: str
    oracle: str = FORWARD.name
    dtypes: tuple[str, ...] = ()
    empty: bool | Literal["parameter"] = False
    constant: bool = False
    together: bool | Literal["also"] = False
    versions: str = ""
    message: str = ""
    threads: int = 1
    cpu: str = ""
    seconds: float = 0.0
    first: bool = False
    where: str | Mapping[str, str] = ""
    unrestricted: str = ""
    upstream: str = "not yet reported"

    def predicate(self, operator: str) -> Predicate | None:
        """Which elements of this operator's result it is about; None for all of them."""
        if isinstance(self.where, str):
            return Predicate(self.where) if self.where else None
        found = (text for name in known_as(operator) for glob, text in self.where.items() if fnmatchcase(name, glob))
        text = next(found, None)
        return Predicate(text) if text is not None else None

    def concerns(self, target: str, version: str, oracles: Sequence[str], symptom: str, message: str) -> bool:
        """Could this entry explain a discrepancy found by one of these oracles, its operators apart?"""
        return (
            self.oracle in oracles
            and symptom in self.symptoms
            and self.names(target)
            and self.says(message)
            and self.applies_to(version)
            and self.here
        )

    @property
    def here(self) -> bool:
        """Is this processor one of the entry's?"""
        return not self.cpu or machine.has(self.cpu)

    def names(self, target: str) -> bool:
        """Is this target one of the entry's, in whatever environment?"""
        return any_of(self.targets).match(target.split("@")[0]) is not None

    def says(self, message: str) -> bool:
        """Does the message contain what the entry asks for?"""
        return re.search(self.message, message) is not None

    def applies_to(self, version: str) -> bool:
        """Is this version of the framework one of the entry's?"""
        return not self.versions or SpecifierSet(self.versions, prereleases=True).contains(version)

    def is_of(self, operator: str) -> bool:
        """Is this operator one of the entry's, or one that follows from one of them?"""
        return any(map(any_of(self.operators).match, known_as(operator)))

    def covers(
        self, operator: str, result: TensorType, operands: Sequence[TensorType], parameters: Sequence[TensorType] = ()
    ) -> bool:
        """Is this operator, with these types, one of the entry's? parameters: the types of those operands that are."""
        dtypes = {type_.dtype for type_ in (result, *operands[:1])}
        small = parameters if self.empty == "parameter" else (result, *operands)
        return (
            self.is_of(operator)
            and (not self.dtypes or not dtypes.isdisjoint(self.dtypes))
            and (not self.empty or any(type_.size == 0 for type_ in small))
            and (not self.constant or len(parameters) == len(operands))
        )


def load(root: Path = entry.FOLDER) -> tuple[KnownIssue, ...]:
    """The issues in a folder of what is known, in the order in which they are asked: those that say `first`, then those
    of the question `forward`, which other questions show, too, then by framework and id. Raises KnownFileError naming the
    file and what is wrong."""
    found = entry.load(root, "issue", KnownIssue, _check)
    return tuple(sorted(found, key=lambda issue: (not issue.first, issue.oracle != FORWARD.name)))


@cache
def _operators(globs: tuple[str, ...]) -> tuple[str, ...]:
    """That match one of these."""
    return tuple(filter(any_of(globs).match, OPS))


def _check(data: Mapping[str, Any]) -> None:
    """Raises ValueError where something else than its keys, symptoms and message is wrong with an entry."""
    for glob in data["operators"]:
        if not _operators((glob,)):
            raise ValueError(f"no operator matches {glob!r}")
    oracle = data.get("oracle", FORWARD.name)
    if oracle not in QUESTIONS:
        raise ValueError(f"unknown oracle {oracle!r}; there are {', '.join(QUESTIONS)}")
    for glob in data["targets"]:
        if not any(map(any_of((glob,)).match, QUESTIONS[oracle].targets)):
            raise ValueError(f"no target matches {glob!r}")
    _check_where(data)
    SpecifierSet(data.get("versions", ""))
    if not re.fullmatch(r"(!?\w+)?", data.get("cpu", "")):
        raise ValueError("cpu must be the name of a feature, or ! and the name")


def _check_where(data: Mapping[str, Any]) -> None:
    """Raises ValueError where an expression is none, or names what one of the operators does not have."""
    where = data.get("where", "")
    for glob, text in where.items() if isinstance(where, Mapping) else [("*", where)] if where else []:
        names = [name for name in _operators(tuple(data["operators"])) if fnmatchcase(name, glob)]
        if not names:
            raise ValueError(f"where: no operator of the entry matches {glob!r}")
        predicate = Predicate(text)
        try:
            for name in names:
                spec = OPS[name]
                facts = list(QUESTIONS[data.get("oracle", FORWARD.name)].named)
                facts += [f"{EARLIER}{name}" for name in spec.attrs] if data.get("together") else []
                predicate.check((*spec.attrs, *facts), len(spec.operands) - 1 + spec.variadic)
        except PredicateError as error:
            raise ValueError(f"where: {text!r}: {error}") from error
        if data.get("together") and "got" in predicate.names:
            raise ValueError("where: beside other nodes it is not known what one of them got")
        if predicate.beside and not data.get("together"):
            raise ValueError(f"where: {text!r}: what stands beside is asked by entries with `together` only")
        _check_beside(predicate, max(len(OPS[name].operands) - 1 + OPS[name].variadic for name in names))


def _check_beside(predicate: Predicate, most: int) -> None:
    """Raises ValueError where a name of what stands beside is of nothing, or an operand of it is not there."""
    for globs, place in predicate.beside:
        for glob in globs.split(","):
            if glob not in LEAVES and not _operators((glob,)):
                raise ValueError(f"where: {predicate.text!r}: no operator matches {glob!r}")
        if place >= most:
            raise ValueError(f"where: {predicate.text!r}: there is no operand {place}")

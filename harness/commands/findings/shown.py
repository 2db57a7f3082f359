"""Runs programs for maintainers, and keeps the first that shows a fault."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from generators.graphs import Case
from harness.backends import TARGETS, Target, probe
from harness.commands.findings import gather
from harness.execute.pool import Pool
from harness.findings.triage.instance import Instance
from harness.findings.upstream.issue import Shown
from harness.findings.upstream.literals import NoProgramError
from harness.findings.upstream.own import written
from harness.findings.upstream.seen import Seen, seen_in
from harness.findings.upstream.short import PREFERRED, programs, why_not
from harness.findings.upstream.tidy import LONGEST, counted
from harness.questions import QUESTIONS
from harness.search.laboratory import Laboratory

HANG, SLOW = 60.0, 300.0
"""Seconds after which a short program is taken not to return, and for which others are waited for."""
TOLD = 12
"""Lines of what is raised."""
TRIES, ASKED = 4, 12
"""Targets that show a fault and are written programs for, and targets that are asked whether they do."""


def shown_by(one: Instance) -> Shown:
    """The first program that shows it. Raises NoProgramError."""
    if one.kind in ("program", "model"):
        return by_its_own(one)
    if one.case is None:
        raise NoProgramError("it is about a training run on ranks")
    with Pool() as pool:
        return by_a_graph(Laboratory(pool, QUESTIONS[one.question]), one)


def by_its_own(one: Instance) -> Shown:
    """The entry's own program, as a person would send it."""
    file = one.folder / "reproducer.py"
    if not file.is_file():
        raise NoProgramError("it is about a whole model, and has no program of its own")
    source = file.read_text(encoding="utf-8")
    texts = written(source)
    whole = ran(source, SLOW)
    if whole is None or whole.returncode != 1 or not whole.stdout.rpartition("reproduced")[1]:
        told = " ".join((whole.stdout if whole else "it does not return").split())[-100:]
        raise NoProgramError(f"its program does not show it here ({told or 'it says nothing'})")
    for text in texts:
        done = ran(text, SLOW)
        if done is None or done.returncode != 1:
            continue
        last = _last(done.stderr)
        raised = last.partition(": ")[2][:60]
        if "AssertionError" in last or (raised and raised in whole.stdout) or "reproduced" in done.stdout:
            return Shown("", None, text, f"{done.stdout.strip()}\n{last}".strip(), _versions(one, text))
    raise NoProgramError("without what it says of its status, its program does not show it")


def by_a_graph(lab: Laboratory, one: Instance) -> Shown:
    """The first short program that shows what a graph shows on a target, else one that is longer. Raises
    NoProgramError."""
    assert one.case is not None
    reasons: list[str] = []
    longer: list[Shown] = []
    shows = 0
    for target in targets_of(one, reasons):
        seen = seen_on(lab, one, target)
        if seen is None:
            continue
        shows += 1
        try:
            for text in programs(target, one.case, seen, one.question):
                printed = run(text, seen, one.message if one.kind == "issue" else "")
                if printed is None:
                    continue
                longer.append(Shown(target.name, seen, text, printed, probe.versions([target])))
                if counted(text) <= LONGEST:
                    return longer[-1]
                break
            reasons.append(f"written as a user would, it does not show on {target.name}")
        except NoProgramError as error:
            reasons.append(str(error))
        if shows == TRIES:
            break
    if longer:
        return min(longer, key=lambda shown: counted(shown.program))
    raise NoProgramError(reasons[-1] if reasons else "none of its targets that are available here shows it")


def targets_of(one: Instance, reasons: list[str]) -> Iterator[Target]:
    """Those that are available and that programs are written for, what needs the fewest lines first. reasons: takes
    why the others are not."""
    order = {name: number for number, name in enumerate(PREFERRED)}
    question = QUESTIONS[one.question]
    named = [question.targets[name] for name in gather.names_of(one)]

    def place(target: Target) -> tuple[int, int, int, str]:
        name = target.name
        return name.count("/"), order.get(name.rpartition("/")[2], len(order)), len(name), name

    asked = 0
    for target in sorted(named, key=place):
        why = why_not(one.question, target)
        if why:
            reasons.append(why)
        elif asked < ASKED and probe.probe(target).available:
            asked += 1
            yield target


def seen_on(lab: Laboratory, one: Instance, target: Target) -> Seen | None:
    """What a target shows of it, if it does."""
    assert one.case is not None
    case: Case = one.case
    examined = lab.judge(case, [target])
    found = examined.verdicts[target.name].discrepancy
    if found is None or found.symptom not in one.symptoms:
        return None
    return seen_in(found, examined.expected, examined.outcomes[target.name])


def ran(text: str, seconds: float) -> subprocess.CompletedProcess[str] | None:
    """A program, run as a file of a folder of its own; None: it does not return."""
    with tempfile.TemporaryDirectory(prefix="dissent-") as folder:
        (Path(folder) / "program.py").write_text(text, encoding="utf-8")
        try:
            return subprocess.run(
                [sys.executable, "program.py"], cwd=folder, capture_output=True, text=True, timeout=seconds,
                check=False, errors="replace",
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return None


def run(text: str, seen: Seen, message: str = "") -> str | None:
    """What a program prints, where it shows what was seen: a wrong result fails its assertion, a refusal raises.
    message: a regular expression of what a refusal says."""
    done = ran(text, HANG if seen.symptom == "timeout" else SLOW)
    if done is None:
        return f"(nothing within {HANG:g} s)" if seen.symptom == "timeout" else None
    last = _last(done.stderr)
    if seen.symptom == "crash":
        return f"(the process ends with {_status(done.returncode)})" if done.returncode not in (0, 1) else None
    if done.returncode != 1 or seen.symptom == "timeout":
        return None
    asserted = "AssertionError" in last
    if seen.symptom == "rejected":
        kind = seen.message.split(":", 1)[0].split(".")[-1]
        told = kind in done.stderr and re.search(message, done.stderr)
        return _said(done.stderr, kind) if told else None
    return f"{done.stdout.strip()}\n{last}" if asserted else None


def _status(code: int) -> str:
    """With the name of the signal that ended it."""
    named = code < 0 and -code in set(signal.Signals)
    return f"status {code} ({signal.Signals(-code).name})" if named else f"status {code}"


def _last(text: str) -> str:
    return (text.strip().splitlines() or [""])[-1]


def _said(text: str, kind: str) -> str:
    """What is raised, from the line that names it on, without the middle of what is long."""
    lines = [line for line in text.splitlines() if line.strip()]
    begins = [place for place, line in enumerate(lines) if re.match(rf"[\w.]*\b{kind}\b", line)]
    told = lines[begins[-1] :] if begins else lines[-1:]
    return "\n".join(told if len(told) <= TOLD else [*told[:2], "…", *told[3 - TOLD :]])


def _versions(one: Instance, text: str) -> dict[str, str]:
    """Of Python, of the packages of its targets, and of what the program imports."""
    named = [TARGETS[name] for name in one.subjects if name in TARGETS]
    packages = metadata.packages_distributions()
    found = re.findall(r"(?m)^\s*(?:import|from) (\w+)", text)
    imported = {name: metadata.version(name) for module in found for name in packages.get(module, ())[:1]}
    own = {name: version for name, version in imported.items() if name not in ("numpy", "onnx")}
    return {**probe.versions(named), **own, **imported}

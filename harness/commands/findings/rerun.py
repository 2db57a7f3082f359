"""What is known, run again: cases on the targets that their entries name, all else by its program."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from generators import caseio
from harness.commands.findings import gather
from harness.execute.environments import EnvironmentsError, interpreter
from harness.execute.globs import matching
from harness.execute.isolation.jobs import Share
from harness.execute.pool import Pool
from harness.execute.reading import FileError, read_by
from harness.findings.bisection import programs, search
from harness.findings.known import issues
from harness.findings.known.issues import KnownIssue
from harness.findings.triage.instance import Instance
from harness.findings.written import FILE
from harness.search import known_cases
from harness.search.known_cases import FIXED, SHOWS
from harness.search.laboratory import Laboratory

STATES = {search.WRONG: SHOWS, search.RIGHT: FIXED}
"""What it means that a program shows what it is of, or does not."""
PROGRAM_SECONDS = 300.0
"""That a program may take: the slowest compile a model."""


@dataclass(frozen=True)
class Row:
    """An entry on one of its targets, or its program on all that it names. status: "shows", "fixed", or "not run: …"
    with the reason; upstream: a link, or empty."""

    id: str
    targets: tuple[str, ...]
    status: str
    upstream: str


Done = tuple[tuple[Row, ...], ...]
"""The rows of each entry that a job has done."""


def entries(root: Path, globs: str = "*") -> tuple[KnownIssue | Instance, ...]:
    """Entries of these ids: those of targets with their cases, others as triage has them, if they have a program.
    Raises KnownFileError, and ValueError where a glob matches none."""
    others = [one for one in gather.beside_issues(root) if (one.folder / FILE).is_file()]
    found = {one.id: one for one in (*issues.load(root), *others)}
    return tuple(found[name] for name in matching(globs, found, "known issue"))


def rerun(root: Path, globs: str, share: Share[Done]) -> Done:
    """Run those entries that this job is given. Raises HarnessError and FileError."""
    chosen, done = entries(root, globs), share.before or ()
    with Pool() as pool:
        for number in share.numbers("entry", len(chosen), len(done)):
            entry = chosen[number]
            done += (_of_case(pool, entry) if isinstance(entry, KnownIssue) else (_of_program(entry),),)
            share.tell(done)
    return done


def _of_case(pool: Pool, issue: KnownIssue) -> tuple[Row, ...]:
    if not issue.here:
        return (Row(issue.id, issue.targets, f"not run: of processors with {issue.cpu}", issue.upstream),)
    targets = known_cases.targets_of(issue)
    if not targets:
        return (Row(issue.id, issue.targets, "not run: no target is here in a version that it names", issue.upstream),)
    case, lab = read_by(issue.case, caseio.loads), Laboratory(pool)
    status = {target.name: known_cases.still_shows(lab, issue, target, case) for target in targets}
    return tuple(Row(issue.id, (name,), said, issue.upstream) for name, said in status.items())


def _of_program(entry: Instance) -> Row:
    path = entry.folder / FILE
    try:
        python = interpreter(programs.needs_of(path).environment)
    except (EnvironmentsError, FileError) as error:
        return Row(entry.id, entry.subjects, f"not run: {error}", entry.upstream)
    said = programs.run(path, python, PROGRAM_SECONDS)
    status = STATES.get(said.state, f"not run: {said.told}")
    return Row(entry.id, entry.subjects, status, entry.upstream)

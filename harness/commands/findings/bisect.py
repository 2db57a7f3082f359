"""The command `bisect`: which release broke what a finding or a known entry shows, and which mended it."""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Annotated

import typer
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from rich.table import Table

from harness.commands.findings import gather
from harness.commands.shared.terminal import Json, Known, fail, finite, print_wide, say, unwritten, write_json
from harness.execute import releases
from harness.execute.files import replace_text
from harness.execute.isolation.signals import status_of
from harness.execute.reading import FileError
from harness.findings.bisection import answers
from harness.findings.bisection.answers import Answers
from harness.findings.bisection.programs import Needs, Program, needs_of
from harness.findings.bisection.search import FILE, RIGHT, WRONG, Bisection, search
from harness.findings.bisection.together import Search, together
from harness.findings.known.entry import FOLDER, note
from harness.findings.triage.instance import Instance
from harness.findings.written import FILE as PROGRAM

PACKAGES = {
    "executorch": "executorch",
    "iree": "iree-base-compiler",
    "jax": "jax",
    "keras": "keras",
    "litert": "litert-torch | ai-edge-litert tensorflow-cpu",
    "ncnn": "ncnn",
    "onednn": "torch tensorflow-cpu",
    "onnx": "onnx2tf onnx2torch tf2onnx | onnx",
    "onnxruntime": "onnxruntime",
    "openvino": "openvino",
    "tensorflow": "tensorflow-model-optimization | tensorflow-cpu",
    "torch": "torchao torchrec | torch",
    "tvm": "apache-tvm",
    "xla": "jax tensorflow-cpu",
}
"""By the framework of a finding: whose releases are asked. What stands on another package comes before it: a program
that needs both is about the first. Side by side, the one whose version an entry names, else the one that the program
says it ran with before the other."""
STYLES = {WRONG: "red", RIGHT: "green"}
DROP = "Remove the environment of a release again, if this command built it, as soon as no program waits for it."
TRUST = "Take it that the installed release shows it, as the tests say of entries; run it only to compare words."


def bisect(
    findings: Annotated[list[str], typer.Argument(help="Folders of findings, or ids of known entries (globs).")],
    package: Annotated[str, typer.Option(help="Whose releases are asked, else the framework's.")] = "",
    among: Annotated[str, typer.Option("--releases", help="Only those within these bounds, as in >=2.5,<3.")] = "",
    every: Annotated[bool, typer.Option("--all", help="Ask all releases, and not only as many as it takes.")] = False,
    write: Annotated[bool, typer.Option("--write", help="Write since and until into known entries.")] = False,
    drop: Annotated[bool, typer.Option("--drop", help=DROP)] = False,
    trust: Annotated[bool, typer.Option("--trust-installed", help=TRUST)] = False,
    known_issues: Known = FOLDER,
    timeout: Annotated[float, typer.Option(min=1, callback=finite, help="Seconds that a program may take.")] = 300.0,
    json_file: Json = None,
) -> None:
    """Run a reproducer with released versions of its framework: the first that is wrong, and the first that is right
    again. Environments are made on demand, side by side, in .environments/releases; they need a package index. Of many,
    the release that most wait for is asked next. What a release answered is kept there: the same command goes on."""
    rows: dict[str, object] = {}
    failed = code = 0
    try:
        bounds = _bounds(among)
        chosen = {one.id: one for one in _chosen(findings, known_issues)}
        kept = Answers(answers.file())
        searches: list[Search] = []
        released = cache(releases.released)
        for one in chosen.values():
            try:
                program = _program(one, package, kept, timeout, trust)
                asked = list(bounds.filter(released(program.package), prereleases=True))
                going = search(program.package, program.here, asked, every)
                searches.append(Search(one.id, program, going))
            except FileError as error:
                failed += _refused(one.id, error, len(chosen) == 1)
        for ended, found in together(searches, drop, _tell if len(chosen) > 1 else lambda line: None):
            if isinstance(found, ValueError):
                failed += _refused(ended.name, found, len(chosen) == 1)
                continue
            if len(chosen) == 1:
                _show(found)
            say(f"{ended.name}: {found.line}")
            rows[ended.name] = found.to_json()
            _keep(chosen[ended.name], found, write)
        if len(chosen) > 1:
            say(f"{len(rows)} of {len(chosen)} bisected; {failed} could not be, as said above")
    except FileError as error:
        raise fail(str(error)) from error
    except OSError as error:
        raise fail(unwritten(error, answers.file())) from error
    except KeyboardInterrupt as stop:
        code = status_of(stop)
        say(f"{len(rows)} bisected; the same command goes on", style="yellow")
    write_json(json_file, rows)
    if code:
        raise typer.Exit(code)


def _bounds(text: str) -> SpecifierSet:
    """Raises FileError."""
    try:
        return SpecifierSet(text)
    except InvalidSpecifier as error:
        raise FileError(f"--releases: {error}") from error


def _refused(name: str, error: ValueError, alone: bool) -> int:
    """Say why one cannot be bisected; a command about it alone ends."""
    if alone:
        raise fail(str(error)) from error
    say(f"{name}: {error}", style="yellow")
    return 1


def _chosen(names: list[str], known: Path) -> list[Instance]:
    """Raises FileError."""
    entries = gather.entries(known)
    found: dict[str, Instance] = {}
    for name in names:
        matching = [one for one in entries if fnmatchcase(one.id, name)]
        if not matching and not (Path(name) / "finding.json").is_file():
            raise FileError(f"{name}: neither the id of a known entry nor the folder of a finding")
        found |= {one.id: one for one in matching or [gather.of_folder(Path(name))]}
    return list(found.values())


def _program(one: Instance, package: str, kept: Answers, seconds: float, trust: bool) -> Program:
    """What is asked of one. Raises FileError."""
    path = one.folder / PROGRAM
    if not path.is_file():
        raise FileError(f"{one.folder} has no reproducer")
    needs = needs_of(path)
    name, needed = package or package_of(one.framework, needs, one.versions), ", ".join(needs.all) or "nothing"
    if not name:
        raise FileError(f"{one.id}: whose releases? (--package; its reproducer needs {needed})")
    if name not in needs.all:
        raise FileError(f"{one.id}: its reproducer does not need {name}, but {needed}")
    words = "rejected" in one.symptoms
    return Program(path, name, needs, seconds, one.threads, kept, trust and one.here, words, _tell)


def package_of(framework: str, needs: Needs, versions: str = "") -> str:
    """Whose releases are asked (`PACKAGES`); empty where the program needs none of them. versions: of an entry."""
    named = [name for name, version in needs.all.items() if versions.endswith(f"={version}")]
    for side_by_side in PACKAGES.get(framework, "").split("|"):
        names = [name for name in side_by_side.split() if name in needs.all]
        if names:
            return min(names, key=[*named, *needs.named, *names].index)
    return ""


def _tell(line: str) -> None:
    say(line, style="dim")


def _show(found: Bisection) -> None:
    """A line for each release that was asked."""
    table = Table("release", "", "what it says")
    for version, answer in sorted(found.answers.items()):
        here = " (here)" if version == found.here else ""
        table.add_row(f"{version}{here}", f"[{STYLES.get(answer.state, 'yellow')}]{answer.state}[/]", answer.told[:120])
    print_wide(table)


def _keep(one: Instance, found: Bisection, write: bool) -> None:
    """Beside a finding, or, where this is asked for, in an entry."""
    told = found.to_json()
    try:
        if one.kind == "finding":
            replace_text(one.folder / FILE, json.dumps(told, indent=1) + "\n")
        elif write:
            note(one.folder, {key: told[key] for key in ("since", "until", "newest")})
    except OSError as error:
        raise fail(unwritten(error, one.folder)) from error


COMMANDS = (bisect,)

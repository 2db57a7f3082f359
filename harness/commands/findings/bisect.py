"""The command `bisect`: which release broke what a finding or a known entry shows, and which mended it."""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from harness.commands.findings import gather
from harness.commands.shared.terminal import Json, Known, console, fail, finite, print_wide, unwritten, write_json
from harness.execute import releases
from harness.execute.files import replace_text
from harness.execute.isolation.signals import status_of
from harness.execute.reading import FileError
from harness.findings import bisection
from harness.findings.bisection import RIGHT, WRONG, Bisection
from harness.findings.known.entry import FOLDER, note
from harness.findings.triage.instance import Instance
from harness.findings.written import FILE

PACKAGES = {
    "jax": ("jax",),
    "keras": ("keras",),
    "litert": ("ai-edge-litert", "tensorflow-cpu"),
    "onednn": ("torch", "tensorflow-cpu"),
    "onnx": ("onnx",),
    "onnxruntime": ("onnxruntime",),
    "openvino": ("openvino",),
    "tensorflow": ("tensorflow-cpu",),
    "torch": ("torch",),
    "tvm": ("apache-tvm",),
    "xla": ("jax", "tensorflow-cpu"),
}
"""By the framework of a finding: whose releases are asked, the first of them that its reproducer needs."""
STYLES = {WRONG: "red", RIGHT: "green"}


def bisect(
    findings: Annotated[list[str], typer.Argument(help="Folders of findings, or ids of known entries (globs).")],
    package: Annotated[str, typer.Option(help="Whose releases are asked, else the framework's.")] = "",
    every: Annotated[bool, typer.Option("--all", help="Ask all releases, and not only as many as it takes.")] = False,
    write: Annotated[bool, typer.Option("--write", help="Write since and until into known entries.")] = False,
    known_issues: Known = FOLDER,
    timeout: Annotated[float, typer.Option(min=1, callback=finite, help="Seconds that a program may take.")] = 300.0,
    json_file: Json = None,
) -> None:
    """Run a reproducer with released versions of its framework: the first that is wrong, and the first that is right
    again. Environments are made on demand, side by side, in .environments/releases; they need a package index."""
    try:
        chosen = _chosen(findings, known_issues)
    except FileError as error:
        raise fail(str(error)) from error
    rows: dict[str, object] = {}
    failed = code = 0
    try:
        for one in chosen:
            try:
                found = _bisected(one, package, every, timeout)
                if len(chosen) == 1:
                    _show(found)
                console.print(f"{one.id}: {found.line}", markup=False, highlight=False, soft_wrap=True)
                rows[one.id] = found.to_json()
                _keep(one, found, write)
            except (FileError, ValueError) as error:
                if len(chosen) == 1:
                    raise fail(str(error)) from error
                failed += 1
                console.print(f"{one.id}: {error}", style="yellow", markup=False, highlight=False, soft_wrap=True)
    except KeyboardInterrupt as stop:
        code = status_of(stop)
    write_json(json_file, rows)
    if len(chosen) > 1:
        console.print(f"{len(rows)} of {len(chosen)} bisected; {failed} could not be, as said above", highlight=False)
    if code:
        raise typer.Exit(code)


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


def _bisected(one: Instance, package: str, every: bool, seconds: float) -> Bisection:
    """Raises FileError, and ValueError where it does not show itself here."""
    path = one.folder / FILE
    if not path.is_file():
        raise FileError(f"{one.folder} has no reproducer")
    needed = releases.distributions(bisection.modules_of(path))
    name = package or next((name for name in PACKAGES.get(one.framework, ()) if name in needed), "")
    if not name:
        raise FileError(f"{one.id}: whose releases? (--package; its reproducer needs {', '.join(needed) or 'nothing'})")
    if name not in needed:
        raise FileError(f"{one.id}: its reproducer does not need {name}, but {', '.join(needed)}")
    here = releases.installed(name)
    ask = bisection.asking(path, name, here, needed, seconds, one.threads, _tell)
    return bisection.bisect(name, here, releases.released(name), ask, every)


def _tell(line: str) -> None:
    console.print(line, style="dim", markup=False, highlight=False, soft_wrap=True)


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
            replace_text(one.folder / bisection.FILE, json.dumps(told, indent=1) + "\n")
        elif write:
            note(one.folder, {key: told[key] for key in ("since", "until", "newest")})
    except OSError as error:
        raise fail(unwritten(error, one.folder)) from error


COMMANDS = (bisect,)

"""The newest releases of the frameworks, as the package index has them, as environments beside those that are here."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from harness.backends import TARGETS
from harness.execute import environments, releases
from harness.execute.environments import EnvironmentsError
from harness.execute.files import replace_text

FILE = "newest.toml"
"""In the findings folder; its environments are built beside it (`environments.VARIABLE`)."""


@dataclass(frozen=True)
class Newest:
    """A release that is newer than what is here. name: of its environment; targets: that it runs."""

    package: str
    version: str
    name: str
    targets: tuple[str, ...]


def newest(globs: str, folder: Path, tell: Callable[[str], None]) -> list[Newest]:
    """What is newer than here of the frameworks' packages that the globs name, with a file of an environment for each
    in the folder. tell: takes a line for each that is asked; the first that cannot be had ends the asking, since it is
    the index that is out of reach. Raises OSError."""
    found: list[Newest] = []
    text: list[str] = []
    for package, targets in _packages(globs).items():
        try:
            here, last = releases.installed(package), releases.released(package)[-1]
        except EnvironmentsError as error:
            tell(f"the newest releases are left out: {error}")
            break
        tell(f"{package}: {last} is the newest release, {here} is here")
        if last <= here:
            continue
        beside = releases.distributions(module for name in targets for module in TARGETS[name].modules)
        asked = next(iter(releases.environments_of(package, last, beside)))
        found.append(Newest(package, str(last), f"newest-{package}-{last}", tuple(targets)))
        text += [f'["{found[-1].name}"]', "packages = [", *(f'    "{one}",' for one in asked.packages), "]", ""]
    for old in (folder / ".environments").glob("newest-*"):  # of what was the newest before
        if old.name not in {one.name for one in found}:
            shutil.rmtree(old, ignore_errors=True)
    if found:
        replace_text(folder / FILE, "\n".join(text))
    return found


def _packages(globs: str) -> dict[str, list[str]]:
    """Installed packages by which targets of this environment are there, with these targets."""
    named: dict[str, list[str]] = {}
    for target in TARGETS.values():
        if not target.environment:
            have = environments.versions_of([next(iter(target.packages))])
            for name in next(iter(target.packages)).split("|") if have else ():
                if environments.versions_of([name]):
                    named.setdefault(name, []).append(target.name)
                    break
    return {name: targets for name, targets in named.items() if any(fnmatchcase(name, g) for g in _split(globs))}


def _split(globs: str) -> Sequence[str]:
    return [glob.strip() for glob in globs.split(",") if glob.strip()]

"""Python environments beside the one that Dissent runs in: what `requirements/environments.toml` installs into each,
how one is built, and what state it is in."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO

from msgspec import Struct
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from generators.schema import SchemaError, converted
from harness.execute import install
from harness.execute.files import locked, replace_text
from harness.execute.processes import worker
from harness.execute.reading import FileError, read_json, read_toml

ROOT = Path(__file__).absolute().parents[2]
FILE = Path(__file__).absolute().with_name("requirements") / "environments.toml"
"""The repository's; its environments are built into the folder .environments at the top."""
VARIABLE = "DISSENT_ENVIRONMENTS"
"""Names another file than the repository's; its environments are built into the folder .environments beside it."""
HERE = "."
"""How a person writes the environment that Dissent runs in; in targets and jobs it is the empty string."""
NEEDED = ("numpy", "ml-dtypes")
"""What `harness/execute/worker.py` imports."""
_INSTALLED = """
import importlib.metadata as m, json, sys
found = {d.metadata["Name"]: d.version for d in m.distributions() if d.metadata["Name"]}
print(json.dumps({"python": sys.version.split()[0], **found}))
"""


class EnvironmentsError(FileError):
    """A file, a name or an interpreter that cannot be used, or an installation that failed; the message says which."""


class EnvironmentFile(Struct, frozen=True, forbid_unknown_fields=True):
    """An environment as the file has it (`Environment`)."""

    packages: tuple[str, ...]
    no_deps: tuple[str, ...] = ()
    python: str = ""


class StampFile(Struct, frozen=True, forbid_unknown_fields=True):
    """What is written when all is installed."""

    digest: str
    versions: dict[str, str]


@dataclass(frozen=True)
class Environment:
    """packages: requirements, each with the one version it allows; no_deps: those that are installed after them,
    without what they ask for; python: of the interpreter, a version such as 3.11 or a path (empty: the one that
    Dissent runs in); folder: where it is, or would be; compiles: may packages be compiled from their sources?; cache:
    where what is loaded for it is kept, else the installer's own place"""

    name: str
    packages: tuple[str, ...]
    no_deps: tuple[str, ...]
    python: str
    folder: Path
    compiles: bool = True
    cache: Path | None = None

    @property
    def interpreter(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def stamp(self) -> Path:
        """Written when all is installed: the digest of the pins and what is there."""
        return self.folder / "dissent.json"

    @property
    def digest(self) -> str:
        """Changes with everything that the file says of it."""
        said = json.dumps([sorted(self.packages), sorted(self.no_deps), self.python])
        return hashlib.sha256(said.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class State:
    """versions: of what is installed, by canonical name, "python" among them; none where it cannot be used, and then
    the reason says why."""

    versions: Mapping[str, str]
    reason: str | None


def file() -> Path:
    """The file that is read."""
    return Path(os.environ.get(VARIABLE) or FILE).absolute()


def load() -> Mapping[str, Environment]:
    """All environments by name. Raises EnvironmentsError naming the file and what is wrong with it."""
    return _load(file())


@cache
def _load(path: Path) -> Mapping[str, Environment]:
    try:
        found = read_toml(path)
    except FileError as error:
        raise EnvironmentsError(str(error)) from error
    return {name: _entry(path, name, entry) for name, entry in found.items()}


def _entry(path: Path, name: str, said: object) -> Environment:
    where = f"{path}: {name}"
    if not re.fullmatch(r"[a-z0-9][a-z0-9._-]*", name):
        raise EnvironmentsError(f"{where}: a name is made of small letters, digits, dots and hyphens")
    try:
        entry = converted(said, EnvironmentFile)
    except SchemaError as error:
        raise EnvironmentsError(f"{where}: {error}") from error
    names = {_pinned(where, item) for item in (*entry.packages, *entry.no_deps)}
    missing = [package for package in NEEDED if package not in names]
    if missing:
        raise EnvironmentsError(f"{where}: {' and '.join(missing)} missing, which a worker imports")
    return Environment(name, entry.packages, entry.no_deps, entry.python, _home(path) / name)


def home() -> Path:
    """The folder that environments are built into."""
    return _home(file())


def _home(path: Path) -> Path:
    return (ROOT if path == FILE else path.parent) / ".environments"


def _pinned(where: str, text: str) -> str:
    """The canonical name that a requirement with exactly one version is of."""
    try:
        requirement = Requirement(text)
    except InvalidRequirement as error:
        raise EnvironmentsError(f"{where}: {text!r} is no requirement: {str(error).splitlines()[0]}") from error
    exact = [s for s in requirement.specifier if s.operator in ("==", "===") and "*" not in s.version]
    if len(exact) != 1 or len(requirement.specifier) != 1:
        raise EnvironmentsError(f"{where}: {text!r} does not name one version (==)")
    return canonicalize_name(requirement.name)


def named(name: str) -> Environment:
    """The environment of this name. Raises EnvironmentsError where there is none."""
    known = load()
    if name not in known:
        raise EnvironmentsError(f"no environment is called {name!r} in {file()}; known: {', '.join(known) or 'none'}")
    return known[name]


def state(environment: Environment) -> State:
    """What is there; nothing is started for it."""
    remedy = f"python -m harness env create {environment.name}"
    if not environment.stamp.exists():
        how = "half made" if environment.folder.exists() else "not built"
        return State({}, f"environment {environment.name} is {how} ({remedy})")
    try:
        stamp = read_json(environment.stamp, StampFile)
    except FileError:
        return State({}, f"environment {environment.name}: {environment.stamp} cannot be read ({remedy})")
    if stamp.digest != environment.digest:
        return State({}, f"environment {environment.name} was built from other pins ({remedy})")
    if not environment.interpreter.exists():
        return State({}, f"environment {environment.name} has lost its interpreter ({remedy})")
    return State(stamp.versions, None)


def interpreter(name: str) -> str:
    """The interpreter that workers of this environment run in. Raises EnvironmentsError with the reason why not."""
    if not name:
        return sys.executable
    environment = named(name)
    reason = state(environment).reason
    if reason:
        raise EnvironmentsError(reason)
    return str(environment.interpreter)


def versions_of(packages: Sequence[str], name: str = "") -> dict[str, str]:
    """Installed versions of distributions in an environment ("a|b" means either), as far as they are there. Raises
    EnvironmentsError for an environment that there is not."""
    if not name:
        return worker.versions_of(list(packages))
    have = state(named(name)).versions
    found = {names: [have[n] for n in map(canonicalize_name, names.split("|")) if n in have] for names in packages}
    return {names: versions[0] for names, versions in found.items() if versions}


def create(name: str) -> Environment:
    """Build an environment, in place of whatever is there; at once where it is whole already. Nothing is left of one
    that fails. Raises EnvironmentsError, with where pip's full output is, and OSError."""
    return build(named(name))


def build(environment: Environment) -> Environment:
    """As `create`, of an environment that no file has to list."""
    name, folder = environment.name, environment.folder
    with locked(folder.parent / f".{name}.lock"):
        if state(environment).reason is None:
            return environment
        base = _base(environment)
        shutil.rmtree(folder, ignore_errors=True)
        log = folder.parent / f"{name}.log"
        try:
            with log.open("wb") as output:
                python = str(environment.interpreter)
                bare = ["--without-pip"] if install.has_uv() else []
                _step([base, "-m", "venv", *bare, str(folder)], "python -m venv failed", log, output)
                start = [
                    *install.command(python, environment.cache),
                    *([] if environment.compiles else ["--only-binary", ":all:"]),
                ]
                for options, packages in (([], environment.packages), (["--no-deps"], environment.no_deps)):
                    if packages:
                        _step([*start, *options, *packages], f"{name} cannot be installed", log, output)
            versions = json.loads(subprocess.check_output([python, "-c", _INSTALLED], text=True))
            stamp = {
                "digest": environment.digest,
                "versions": {canonicalize_name(package): version for package, version in sorted(versions.items())},
            }
            replace_text(environment.stamp, json.dumps(stamp, indent=1) + "\n")
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
    return environment


def remove(environment: Environment) -> None:
    """What `build` has made, and what was loaded into a cache of its own: 25 releases of PyTorch had left 68 GB in the
    installer's. Raises OSError."""
    with locked(environment.folder.parent / f".{environment.name}.lock"):
        environment.stamp.unlink(missing_ok=True)  # first: what is half removed is not used
        shutil.rmtree(environment.folder, ignore_errors=True)
        (environment.folder.parent / f"{environment.name}.log").unlink(missing_ok=True)
        if environment.cache:
            shutil.rmtree(environment.cache, ignore_errors=True)


def _base(environment: Environment) -> str:
    """The interpreter that an environment is made with: one that answers."""
    asked = environment.python
    if not asked:
        return sys.executable
    found = asked if "/" in asked else f"python{asked}"
    try:
        subprocess.run([found, "-c", ""], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise EnvironmentsError(f"environment {environment.name} needs {found}, which cannot be run here") from error
    return found


def _step(command: Sequence[str], failed: str, log: Path, output: IO[bytes]) -> None:
    """One step of building. Raises EnvironmentsError with the line of its output that says why it failed."""
    start = log.stat().st_size
    done = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, check=False)
    if done.returncode:
        lines = log.read_bytes()[start:].decode(errors="replace").splitlines()
        telling = [line for line in lines if re.match(r"(ERROR|error|\s+×)", line)] or lines[-1:] or ["no output"]
        raise EnvironmentsError(f"{failed}: {telling[-1].strip()} (all of it: {log})")

"""Released versions of a package that the registry has for this interpreter, and environments for each."""

from __future__ import annotations

import hashlib
import importlib.metadata
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from harness.execute import environments
from harness.execute.environments import NEEDED, Environment, EnvironmentsError

TOGETHER = {"iree-base-compiler": ("iree-base-runtime",), "jax": ("jaxlib",), "torchrec": ("fbgemm-gpu-cpu",)}
"""Packages that are released with another one, under its versions."""
LATE = {"openvino": ("packaging",)}
"""What a package imports where it is needed, and does not ask for: OpenVINO's front end for PyTorch."""


PATIENCE = ("--retries", "1", "--timeout", "20")
"""An index that is out of reach is soon told of."""


def installed(package: str) -> Version:
    """The version that is here. Raises EnvironmentsError."""
    try:
        return Version(importlib.metadata.version(package))
    except importlib.metadata.PackageNotFoundError as error:
        raise EnvironmentsError(f"{package} is not installed") from error


def released(package: str) -> tuple[Version, ...]:
    """Final releases with files for this interpreter and system, in order; pip asks the indexes that it is configured
    for. Raises EnvironmentsError."""
    asked = ["index", "versions", "--disable-pip-version-check", "--no-input", *PATIENCE, package]
    command = [sys.executable, "-m", "pip", *asked]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.splitlines()[-1:]
        raise EnvironmentsError(f"releases of {package} cannot be had: {(lines or ['pip says nothing'])[0].strip()}")
    return listed(done.stdout)


def listed(text: str) -> tuple[Version, ...]:
    """What pip lists, in order: of several builds of a release, the first."""
    found: dict[str, Version] = {}
    for line in re.findall(r"^Available versions: (.+)$", text, re.MULTILINE):
        for word in line.split(","):
            try:
                version = Version(word.strip())
            except InvalidVersion:
                continue
            if not version.is_prerelease:
                found.setdefault(version.public, Version(version.public))
    return tuple(sorted(found.values()))


def distributions(modules: Iterable[str]) -> dict[str, str]:
    """The installed versions of the distributions that modules come from, without the standard library's."""
    owners: Mapping[str, list[str]] = importlib.metadata.packages_distributions()
    names = {canonicalize_name(owner) for module in modules for owner in owners.get(module, ())[:1]}
    return {name: importlib.metadata.version(name) for name in sorted(names)}


def environments_of(
    package: str, version: Version, beside: Mapping[str, str], bare: Mapping[str, str] | None = None
) -> Iterator[Environment]:
    """Environments of a release to be tried in this order, none of them built yet, and all of packages that need no
    compiler: with what else is needed in the versions that are here, with a numpy that the release takes, with all in
    those that it takes, and with the last numpy that older binaries can load. beside: names and versions of what else
    is needed; bare: of what is installed without what it asks for, always in these versions. The package may be among
    either."""
    moved = {package, *TOGETHER.get(package, ())}
    alone = {name: have for name, have in (bare or {}).items() if name not in moved}
    others = {name: have for name, have in beside.items() if name not in moved}
    further = [name for name in (*NEEDED, *LATE.get(package, ())) if name not in {*others, *moved}]
    others |= {name: importlib.metadata.version(name) for name in further}
    pins = {name: f"{name}=={version}" for name in sorted(moved)}
    no_deps = sorted([pins.pop(name) for name in sorted(moved & set(bare or {}))] + _pinned(alone))
    release = list(pins.values())
    free = [*release, *sorted(others)]
    tried = (
        [*release, *_pinned(others)],
        [*release, *sorted(name if name in NEEDED else f"{name}=={have}" for name, have in others.items())],
        free,
        ["numpy<2" if name == "numpy" else name for name in free],
    )
    for packages in dict.fromkeys(map(tuple, tried)):
        digest = hashlib.sha256(" ".join((*packages, *no_deps)).encode()).hexdigest()[:8]
        name = f"{canonicalize_name(package)}-{version}-{digest}"
        home = environments.home() / "releases"
        yield Environment(name, packages, tuple(no_deps), "", home / name, compiles=False, cache=home / "downloads")


def _pinned(versions: Mapping[str, str]) -> list[str]:
    return [f"{name}=={have}" for name, have in sorted(versions.items())]

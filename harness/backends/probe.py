"""What is here and what is not, with the reason: targets, versions, devices."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from packaging.version import Version

from harness.backends.target.target import Target
from harness.execute import environments, machine


@dataclass(frozen=True)
class Availability:
    """Is a target usable here? version: of its framework (None: not installed); reason: why it is off."""

    name: str
    framework: str
    version: str | None
    available: bool
    reason: str | None


@cache
def probe(target: Target) -> Availability:
    """Look at the installed distributions; nothing is imported."""
    found, reason = installed(target.packages, target.environment)
    packages = list(target.packages)
    if reason is None and target.cpu and not machine.has(target.cpu):
        reason = f"this processor has no {target.cpu}"
    if reason is None and target.device == "cuda":
        built = found[packages[0]] or ""
        reason = None if gpus() else "no CUDA device (nvidia-smi lists none)"
        if reason is None and built.endswith("+cpu"):
            reason = f"{packages[0]} {built} is built without CUDA"
    return Availability(target.name, target.framework, found.get(packages[0]), reason is None, reason)


def installed(packages: Mapping[str, str], environment: str = "") -> tuple[Mapping[str, str], str | None]:
    """Versions of the distributions ("a|b" means either) that an environment has, and why they do not suffice, or None.
    packages: with the least version of each."""
    try:
        environments.interpreter(environment)
    except environments.EnvironmentsError as error:
        return {}, str(error)
    found = environments.versions_of(list(packages), environment)
    for names, least in packages.items():
        have = found.get(names)
        if have is None:
            return found, f"{names.replace('|', ' or ')} is not installed"
        if Version(have) < Version(least):
            return found, f"{names.split('|')[0]} {have} is older than {least}"
    return found, None


def versions(targets: Sequence[Target]) -> dict[str, str]:
    """Versions of Python, numpy and all packages that the targets need, where installed; what another environment has
    is called ENVIRONMENT/PACKAGE unless all the targets are of that one."""
    named = list(dict.fromkeys(target.environment for target in targets)) or [""]
    return {
        key if len(named) == 1 or not name else f"{name}/{key}": version
        for name in named
        for key, version in _versions_in(name, [t for t in targets if t.environment == name]).items()
    }


def _versions_in(environment: str, targets: Sequence[Target]) -> dict[str, str]:
    packages = dict.fromkeys(["python", "numpy", *(p for t in targets for p in t.packages)])
    try:
        found = environments.versions_of(list(packages), environment)
    except environments.EnvironmentsError:
        return {}
    here = {} if environment else {"python": platform.python_version()}
    return here | {k.split("|")[0]: v for k, v in found.items()}


@cache
def gpus() -> tuple[str, ...]:
    """Names of NVIDIA devices; empty where there is no driver."""
    if not shutil.which("nvidia-smi"):
        return ()
    done = subprocess.run(
        ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], capture_output=True, text=True, check=False
    )
    return tuple(line.strip() for line in done.stdout.splitlines() if line.strip()) if done.returncode == 0 else ()


@cache
def cpu() -> str:
    """The processor's model name."""
    if sys.platform == "linux":
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()

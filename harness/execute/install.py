"""How packages are installed: by uv where it is there, in less than half the time, else by pip. uv does not read pip's
configuration, so it is told what that says of indexes, folders and constraints: both install the same.

    python harness/execute/install.py -r requirements.txt

Only the standard library is imported: this runs in an environment that is still empty."""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

OPTIONS = {
    "index-url": "--default-index",
    "extra-index-url": "--index",
    "find-links": "--find-links",
    "constraint": "--constraints",
    "trusted-host": "--allow-insecure-host",
}
"""A setting of pip -> uv's option of the same meaning, given once for each of its values."""


def has_uv() -> bool:
    return importlib.util.find_spec("uv") is not None


def command(python: str, cache: Path | None = None) -> list[str]:
    """What installs packages for this interpreter: what is to be installed goes behind it. cache: a folder for what is
    loaded, else the installer's own."""
    kept = ["--cache-dir", str(cache)] if cache else []
    if not has_uv():
        return [python, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", *kept]
    settings = configured()
    certificates = ["env", f"SSL_CERT_FILE={settings['cert']}"] if "cert" in settings else []
    uv = [sys.executable, "-m", "uv", "pip", "install", "--compile-bytecode", "--python", python]
    return [*certificates, *uv, *kept, *options(settings)]


def configured() -> dict[str, str]:
    """Settings of pip by their names: those of environment variables before those of files for `pip install`, and
    these before general ones."""
    listed = subprocess.check_output([sys.executable, "-m", "pip", "config", "list"], text=True)
    found: dict[str, str] = {}
    for section in ("global", "install", ":env:"):
        for name, value in re.findall(rf"^{section}\.([\w-]+)=(.*)$", listed, re.MULTILINE):
            found[name] = str(ast.literal_eval(value))
    return found


def options(settings: Mapping[str, str]) -> list[str]:
    """The same for uv. As pip does, it takes the best version of all indexes, not that of the first."""
    given = [f"{option}={value}" for name, option in OPTIONS.items() for value in settings.get(name, "").split()]
    return ["--index-strategy=unsafe-best-match", *given]


if __name__ == "__main__":
    sys.exit(subprocess.run([*command(sys.executable), *sys.argv[1:]], check=False).returncode)

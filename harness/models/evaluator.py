"""How programs of workers import `oracles.onnx`, the float64 evaluation of ONNX models. Reproducers do not: they run
where there is no Dissent."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from oracles import onnx

SOURCES = Path(onnx.__file__).absolute().parent
"""What a confined worker has to be allowed to read."""

_TEXT = """import sys
import types

for package, folders in (("oracles", []), ("oracles.onnx", [{folder!r}])):  # the folders above are not to be read
    sys.modules[package] = types.ModuleType(package)
    sys.modules[package].__path__ = folders
# the sources that it runs: {digest}

"""


@cache
def preamble() -> str:
    """The text that makes `from oracles.onnx...` work in a program; it changes when the code that is imported does."""
    files = sorted(SOURCES.rglob("*.py"))
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
    return _TEXT.format(folder=str(SOURCES), digest=digest)

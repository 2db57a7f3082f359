"""Does bisection find the release that changed something, where the release notes say which? Programs of NumPy, each of
which shows what its release notes name; it needs a package index.
`PYTHONPATH=.:tests/meta python tests/meta/planted/campaigns/known_releases.py` prints a table."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from packaging.version import Version

from harness.execute import releases
from harness.findings.bisection.answers import Answers
from harness.findings.bisection.programs import Needs, Program
from harness.findings.bisection.search import bisect

CHANGES = (
    ("1.24.0", "the alias int is gone", "not hasattr(np, 'int')"),
    ("1.24.0", "ragged lists are refused", "raises(lambda: np.array([[1], [1, 2]]))"),
    ("1.25.0", "exceptions have a module of their own", "hasattr(np, 'exceptions')"),
    ("2.0.0", "the text of a scalar names its type (NEP 51)", "repr(np.float64(3.0)) != '3.0'"),
    ("2.0.0", "a Python float takes the other's precision (NEP 50)", "(np.float32(3) + 3.0).dtype == np.float32"),
    ("2.0.0", "solve takes stacks of matrices only", "solved() != (2, 2)"),
    ("2.1.0", "unstack", "hasattr(np, 'unstack')"),
    ("2.2.0", "matvec", "hasattr(np, 'matvec')"),
    ("2.3.0", "strings.slice", "hasattr(getattr(np, 'strings', None), 'slice')"),
    ("2.4.0", "in1d is gone", "not hasattr(np, 'in1d')"),
)
PROGRAM = """
import sys

import numpy as np


def raises(work):
    try:
        work()
    except ValueError:
        return True
    return False


def solved():
    try:
        return np.linalg.solve(np.stack([np.eye(2)] * 2), np.ones((2, 2))).shape
    except ValueError:
        return None


shown = {expression}
print("reproduced" if shown else "not reproduced")
sys.exit(bool(shown))
"""


def main() -> None:
    """A line a change: what the notes say, what bisection finds, how many releases it asked."""
    known = releases.released("numpy")
    needs = Needs("", releases.distributions(["ml_dtypes", "numpy"]), {})
    with tempfile.TemporaryDirectory() as folder:
        for number, (release, text, expression) in enumerate(CHANGES):
            path, started = Path(folder) / f"{number}.py", time.monotonic()
            path.write_text(PROGRAM.format(expression=expression), encoding="utf-8")
            program = Program(path, "numpy", needs, 60.0, 1, Answers(Path(folder) / "answers.jsonl"))
            found = bisect("numpy", program.here, known, program.ask)
            same = "found" if found.since == Version(release) else "OTHERWISE"
            seconds = time.monotonic() - started
            print(f"{same}: {text}: {release}; {found.line}; {len(found.answers)} asked, {seconds:.0f} s", flush=True)


if __name__ == "__main__":
    main()

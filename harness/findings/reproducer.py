"""A finding as a program: the very text that ran, followed by its inputs and a check of its outputs."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from harness.backends.target.text import swapped
from harness.questions.question import Reproduction
from oracles.judge.discrepancy import SYMPTOMS

INLINE = 64
"""Arrays of at most this many elements are written into the program, larger ones into data.npz beside it."""

PROLOGUE = '''"""{title}

ran with {versions}
exit status: 1 reproduced, 0 not reproduced, 77 not available here
"""

import importlib.util
import sys

for module in {modules!r}:
    if importlib.util.find_spec(module) is None:
        print(f"not available: {{module}}")
        sys.exit(77)

# ---- the program that ran ----

'''

_GPU = """import shutil

if not shutil.which("nvidia-smi"):
    print("not available: a CUDA device")
    sys.exit(77)

"""

_DATA = """

# ---- its inputs, and what a correct evaluation returns: value, and how far from it (inf: anything) ----

from pathlib import Path

from numpy import array, inf, nan

{data}
"""

WRONG = '''

def wrong(output, expected, allowed, dtype, shape):
    """What is wrong with one output, or None."""
    if str(output.dtype) != dtype or output.shape != tuple(shape):
        return f"{output.dtype}{output.shape} instead of {dtype}{tuple(shape)}"
    if not shape and output.ndim == 0:
        output, expected, allowed = output.reshape(1), expected.reshape(1), allowed.reshape(1)
    if "complex" in dtype:  # the parts side by side: NaN and infinities in place, then the modulus of the difference
        got, bad, distance = output, np.zeros(output.shape, bool), np.zeros(output.shape)
        for a, b in ((output.real, expected.real), (output.imag, expected.imag)):
            bad |= (np.isnan(a) != np.isnan(b)) | ((np.isinf(a) | np.isinf(b)) & ~np.isnan(b) & (a != b))
            with np.errstate(all="ignore"):
                distance = np.hypot(distance, np.where(np.isfinite(a) & np.isfinite(b), a.astype("float64") - b, 0.0))
            if ZERO_SIGNS:
                bad |= (a == 0) & (b == 0) & (allowed == 0) & (np.signbit(a) != np.signbit(b))
        bad = ~np.isinf(allowed) & (bad | (distance > allowed))
    elif "float" in dtype:
        got = output.astype("float64")
        with np.errstate(all="ignore"):
            same = (got == expected) | (np.isnan(got) & np.isnan(expected))
            near = np.isfinite(got) & np.isfinite(expected) & (np.abs(got - expected) <= allowed)
        bad = ~np.isinf(allowed) & ~same & ~near
        if ZERO_SIGNS:
            bad |= (allowed == 0) & (got == 0) & (expected == 0) & (np.signbit(got) != np.signbit(expected))
    else:
        got, bad = output, ~np.isinf(allowed) & (output != expected)
    if not bad.any():
        return None
    at = tuple(int(i[0]) for i in np.nonzero(bad))
    detail = f"expected {expected[at]}, got {got[at]}, allowed {allowed[at]:.3g}"
    return f"{bad.sum()} of {bad.size} wrong, at {at}: {detail}"
'''
"""How a reproducer compares one output with what is expected."""

_MAIN = """

def main():
    if SYMPTOM in ("crash", "timeout") and "--child" not in sys.argv:
        import subprocess

        try:
            code = subprocess.run([sys.executable, __file__, "--child"], timeout=SECONDS).returncode
        except subprocess.TimeoutExpired:
            print("reproduced: no result within", SECONDS, "s")
            return 1
        print("the process ended with status", code)
        return 0 if code == 0 else 77 if code == 77 else 1
    try:
        outputs = load({n: ARRAYS[n] for n in PARAMETERS})(*[ARRAYS[n] for n in INPUTS])
    except Exception as error:
        # another failure than the one looked for says nothing about it: like a framework that is not there
        why = (str(error).splitlines() or [""])[0]
        print(f"{'reproduced' if SYMPTOM == 'rejected' else 'not available'}: {type(error).__name__}: {why}")
        return 1 if SYMPTOM == "rejected" else 77
    if len(outputs) != len(OUTPUTS):
        print(f"reproduced: {len(outputs)} outputs instead of {len(OUTPUTS)}")
        return 1
    failed = 0
    for i, (dtype, shape) in enumerate(OUTPUTS):
        problem = wrong(np.asarray(outputs[i]), EXPECTED[i], ALLOWED[i], dtype, shape)
        print(f"output {i}: {problem or 'correct'}")
        failed |= problem is not None
    print("reproduced" if failed else "not reproduced")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
"""


_COUNT = """        print(f"reproduced: {len(outputs)} outputs instead of {len(OUTPUTS)}")
        return 1
"""
_ANOTHER = """        if SYMPTOM == "rejected":
            print("not reproduced")
            return 0
        print(f"not available: the model has {len(outputs)} values here, not {len(OUTPUTS)}")
        return 77
"""
"""In place of it, where what a program returns is known for one run only."""


def looked_for(modules: Iterable[str], program: str) -> list[str]:
    """What a reproducer looks for before it runs: these modules, each after the packages that it is in (to look for
    "a.b" raises where there is no "a"), and the other packages that the program imports anywhere."""
    parts = [module.split(".") for module in modules]
    wanted = [".".join(names[: n + 1]) for names in parts for n in range(len(names))]
    for node in ast.walk(ast.parse(program)):
        if isinstance(node, ast.Import):
            wanted += [alias.name.partition(".")[0] for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            wanted.append((node.module or "").partition(".")[0])
    return [module for module in dict.fromkeys(wanted) if module not in {*sys.stdlib_module_names, "numpy"}]


def write(
    folder: Path,
    shown: Reproduction,
    symptom: str,
    title: str,
    seconds: float,
) -> Path:
    """Write `reproducer.py` (and `data.npz` where arrays are large) into `folder`; returns its path."""
    outputs = shown.expected.values
    groups = {
        "ARRAYS": dict(shown.arrays),
        "EXPECTED": {str(i): b.value for i, b in enumerate(outputs)},
        "ALLOWED": {str(i): b.error for i, b in enumerate(outputs)},
    }
    arrays = [a for group in groups.values() for a in group.values()]
    inline = all(a.size <= INLINE for a in arrays)
    lines = [
        f"SYMPTOM = {symptom!r}  # {SYMPTOMS[symptom].__name__}",
        f"SECONDS = {seconds!r}",
        f"ZERO_SIGNS = {all(b.zero_sign for b in outputs)!r}  # are the signs of zeros compared?",
    ]
    if inline:
        lines += [f"{name} = {literal(group, keyed=name == 'ARRAYS')}" for name, group in groups.items()]
    else:
        named: dict[str, Any] = {f"{n}_{k}": a for n, g in groups.items() for k, a in g.items()}
        np.savez_compressed(folder / "data.npz", **named)
        lines += [
            'DATA = np.load(Path(__file__).with_name("data.npz"))',
            # a view: the format knows bfloat16 as two bytes only
            "TYPES = {**INPUTS, **PARAMETERS}",
            'ARRAYS = {name: DATA["ARRAYS_" + name].view(dtype) for name, (dtype, _) in TYPES.items()}',
            'EXPECTED = [DATA[f"EXPECTED_{i}"] for i in range(len(OUTPUTS))]',
            'ALLOWED = [DATA[f"ALLOWED_{i}"] for i in range(len(OUTPUTS))]',
        ]
    text = PROLOGUE.format(title=title, versions=shown.versions, modules=looked_for(shown.modules, shown.program))
    if shown.device == "cuda":
        text = swapped(text, ("# ---- the program that ran", f"{_GPU}# ---- the program that ran"))
    main = swapped(_MAIN, (_COUNT, _ANOTHER)) if shown.observed else _MAIN
    text += shown.program + _DATA.format(data="\n".join(lines)) + WRONG + main
    path = folder / "reproducer.py"
    path.write_text(text, encoding="utf-8")
    return path


def literal(group: Mapping[str, np.ndarray], keyed: bool) -> str:
    """A dict (or list) of arrays as Python source that gives back the same bits."""
    items = [(f"{name!r}: " if keyed else "") + _array(array) for name, array in group.items()]
    opening, closing = "{}" if keyed else "[]"
    return "\n".join([opening, *(f"    {item}," for item in items), closing])


def _array(array: np.ndarray) -> str:
    """repr of a float64 is exact, and every narrower number is one. A complex number is not written as one, since
    Python has no literal for a part that is infinite or NaN."""
    if array.dtype.kind == "c":
        parts = np.ascontiguousarray(array).reshape(-1).view(np.real(array).dtype)
        return f"array({parts.tolist()!r}, {str(parts.dtype)!r}).view({str(array.dtype)!r}).reshape({array.shape!r})"
    text = f"array({array.tolist()!r}, dtype={str(array.dtype)!r})"
    return text if array.size else f"{text}.reshape({array.shape!r})"

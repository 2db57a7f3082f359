"""A good file of each kind that is read, and changes that make others of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from hypothesis import strategies as st

from harness.findings.deviation import Deviation
from harness.findings.store import Finding
from harness.training.table import Run


def finding_file() -> str:
    """A record of a finding."""
    about = ("f", "forward", "value", "m", "torch-eager", ("torch-eager",), ("neg",), 1, None)
    return json.dumps(asdict(Finding(*about, {"torch-eager": "mismatch"}, {"torch": "2", "numpy": "2"})))


def deviation_file() -> str:
    """A record of a training run that deviates."""
    return json.dumps(asdict(Deviation("f", "value", "torch-ddp", 2, "loss.0", "m", None, ("linear",), {"torch": "2"})))


def record_file() -> str:
    """A file of training runs to go on with."""
    return f'{{"seed": 1}}\n{json.dumps(asdict(Run("torch-ddp", 2, "float32", 0, "agree")))}\n'


def coverage_file() -> str:
    """A file of coverage."""
    counts = {"neg": {"float32": {"torch-eager": {"agree": 3}}}}
    return json.dumps(
        {"forward": {"cells": counts, "elements": {"neg": 3}, "undetermined": {}, "pairs": {"neg": {"exp": 2}}}}
    )


ISSUE = 'targets = ["torch-*"]\nsymptoms = ["value"]\noperators = ["neg"]\nreason = "r"\nmessage = "a|b"\nthreads = 2\n'
DEVIATION = (
    'kind = "deviation"\nstrategies = ["torch-ddp"]\nparts = ["loss*"]\nsymptoms = ["value"]\nreason = "r"\nworld = 2\n'
)
PINS = '[a]\npackages = ["ml_dtypes==0.6.0", "numpy==2.4.6"]\npython = "3.11"\n'
IMAGES = 'size = [8, 8]\nmean = [0.5, 0.5, 0.5]\nstd = [1.0, 1.0, 1.0]\nresize = "bilinear"\nshorter = 9\n'
AUDIO = 'rate = 16000\nsamples = 512\nfeatures = "mel"\nhop = 80\nlow = 20.0\nconstants = {sr = 16000, n = "frames"}\n'
MODEL = 'kind = "model"\nsymptoms = ["value"]\nreason = "r"\nrunners = ["ort-*"]\nversions = {onnx = ">1"}\n'

ODD = ["", "x", "\u0000", "(", "torch", "class", "[" * 50, "float8", True, False, None, 0, -1, 1.5, 1e308, 2**31, 2**63,
       10**30, [], {}, [[]], [1, "a"], {"a": 1}, [-1], [2**40], [1.5], ["x", "x"]]  # fmt: skip
TEXTS = [b"NaN", b"-Infinity", b"1e999", b"9" * 5000, b"[" * 2000, b"{\"a\":" * 2000, b"\xff", b"\xef\xbb\xbf", b"\x00",
         b'"\\ud800"', b"\n", b'"', b"}", b",", b"=", b"true", b"-1", b"\r", b"[a.b.c]\n", b"a=1\na=1\n"]  # fmt: skip


def _places(data: Any) -> list[tuple[Any, Any]]:
    found = []
    below = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in below:
        found += [(data, key), *_places(value)]
    return found


def mutated(draw: Callable, data: bytes) -> bytes:
    """One to three changes: of values of JSON in their places, or of bytes."""
    for _ in range(draw(st.integers(1, 3))):
        try:
            tree = json.loads(data)
        except (ValueError, RecursionError):
            tree = None
        places = _places(tree)
        if places and draw(st.booleans()):
            where, key = places[draw(st.integers(0, len(places) - 1))]
            how = draw(st.integers(0, 3))
            if how == 0 and isinstance(where, dict):
                where[draw(st.sampled_from(["extra", "name", "", "\n"]))] = where[key]
            elif how == 1:
                del where[key]
            elif how == 2:
                where[key] = [where[key]] * draw(st.integers(0, 3))
            else:
                where[key] = draw(st.sampled_from(ODD))
            data = json.dumps(tree).encode()
        else:
            start = draw(st.integers(0, len(data)))
            end = start + draw(st.sampled_from([0, 0, 1, 2, 20]))
            data = data[:start] + draw(st.sampled_from([*TEXTS, b"", data[end : end + 20]])) + data[end:]
    return data

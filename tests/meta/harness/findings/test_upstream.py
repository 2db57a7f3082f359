"""What goes upstream: literals, checks, short programs that fail where the fault is and pass where it is not, texts."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from math import inf, nan
from pathlib import Path

import numpy as np
import pytest
from examples.small_graphs import chain_case
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from syrupy.assertion import SnapshotAssertion
from typer.testing import CliRunner

from generators.bounds.bounded import Bounded
from generators.graph import TensorType
from harness.backends import TARGETS
from harness.commands.app import app_of
from harness.commands.findings.gather import entries
from harness.commands.findings.report import run
from harness.findings.known.entry import FOLDER
from harness.findings.triage.words import plain_reason, title
from harness.findings.upstream.literals import NoProgramError, literal
from harness.findings.upstream.seen import Seen, checks, condition, seen_in
from harness.findings.upstream.short import LONGEST, programs
from oracles.judge.compare import Expected
from oracles.judge.discrepancy import Discrepancy
from oracles.judge.outcome import Value
from oracles.judge.verdict import judge
from oracles.questions import forward

DTYPES = ("float16", "float32", "float64", "int8", "int64", "uint64", "bool")


@given(st.sampled_from(DTYPES).flatmap(lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_side=3))))
def test_literals_give_the_same_bits_back(array: np.ndarray) -> None:
    again = eval(literal(array, "numpy"), {"np": np, "nan": nan, "inf": inf})
    assert (again.dtype, again.shape) == (array.dtype, array.shape)
    np.testing.assert_array_equal(again, array)
    if array.dtype.kind == "f":
        np.testing.assert_array_equal(np.signbit(again) | np.isnan(again), np.signbit(array) | np.isnan(array))


def test_complex_literals_keep_signs_of_zeros() -> None:
    array = np.array([complex(-0.0, 1), complex(2, -0.0), complex(0.0, 0.5)], "complex64")
    again = eval(literal(array, "numpy"), {"np": np})
    assert again.tobytes() == array.tobytes()


@pytest.mark.parametrize("shape", [(0,), (3, 0), (2, 2)])
def test_nothing_and_zeros_keep_their_shape(shape: tuple[int, ...]) -> None:
    assert eval(literal(np.zeros(shape, "float32"), "numpy"), {"np": np}).shape == shape


def test_what_has_no_literal_is_refused() -> None:
    for array in (np.ones(129), np.array([complex(inf, 1)])):
        with pytest.raises(NoProgramError):
            literal(array, "numpy")


@pytest.mark.parametrize(
    ("value", "error", "wrong", "right"),
    [
        (np.float64(1.0), 1e-7, 1.1, 1.00000005),
        (np.float64(nan), 0.0, 3.0, nan),
        (np.float64(inf), 0.0, 3.4e38, inf),
        (np.float64(0.0), 0.0, -0.0, 0.0),
        (np.float64(-0.0), 0.0, 0.0, -0.0),
        (np.float64(0.0), 1e-9, 1e-3, 1e-10),
        (np.float64(2.5), 0.0, 2.0, 2.5),
        (np.int32(7), 0.0, 8, 7),
        (np.bool_(True), 0.0, False, True),
        (np.float64(1.0), 1e-7, nan, 1.0),
    ],
)
def test_an_assertion_fails_for_what_came_and_holds_for_what_is_right(
    value: object, error: float, wrong: object, right: object
) -> None:
    text = condition(Seen("value", "", value=value, error=error, got=wrong))
    assert not eval(text, {"got": wrong, "expected": value, "math": math})
    assert eval(text, {"got": right, "expected": value, "math": math})


@pytest.mark.parametrize(
    ("value", "got", "part"),
    [(complex(1, -0.0), complex(1, 0.0), "imag"), (complex(inf, 2), complex(nan, 2), "real")],
)
def test_of_complex_numbers_the_part_that_is_wrong_is_compared(value: complex, got: complex, part: str) -> None:
    type_ = TensorType("complex128", (1,))
    expected = Expected(("y",), (type_,), (Bounded(np.array([value]), np.zeros(1), "complex128", zero_sign=True),))
    seen = seen_in(Discrepancy("special", "", 0), expected, Value((np.array([got]),)))
    assert seen.part == part
    lines = checks(seen, "", "{kind}({element})")
    assert f"complex(y[0]).{part}" in lines[0]
    names = {"y": np.array([got]), "inf": inf, "nan": nan, "math": math}
    with pytest.raises(AssertionError):
        exec("\n".join(lines), names)
    exec("\n".join(lines), {**names, "y": np.array([value])})


def planted(name: str) -> Seen:
    """What a target would have shown that negates the worst element of a small graph."""
    case = chain_case()
    expected = forward.expect(case)
    outputs = [np.asarray(v.value, t.dtype) for v, t in zip(expected.values, expected.types, strict=True)]
    outputs[0] = outputs[0].copy()
    outputs[0].flat[0] += 1
    outcome = Value(tuple(outputs))
    discrepancy = judge(expected, outcome).discrepancy
    assert discrepancy, name
    return seen_in(discrepancy, expected, outcome)


@pytest.mark.parametrize("name", ["torch-eager", "ort-all"])
def test_a_short_program_passes_where_nothing_is_wrong(name: str) -> None:
    seen = planted(name)
    (text, *_) = programs(TARGETS[name], chain_case(), seen)
    assert sum(bool(line.strip()) for line in text.splitlines()) <= LONGEST
    assert "dissent" not in text.lower()
    assert run(text, seen) is None, "the framework is right, so that the assertion holds"
    wrong = replace(seen, value=np.float64(seen.value) + 1)  # type: ignore[arg-type]
    (other, *_) = programs(TARGETS[name], chain_case(), wrong)
    assert "AssertionError" in str(run(other, wrong))


def test_short_programs_read_well(snapshot: SnapshotAssertion) -> None:
    names = ("torch-inductor", "tf-xla", "jax-jit", "tvm-O2", "litert-builtin")
    assert {name: next(programs(TARGETS[name], chain_case(), planted(name))) for name in names} == snapshot


def test_refusals_and_crashes_are_told_apart() -> None:
    refused = Seen("rejected", "ValueError: no", type=TensorType("float32", ()))
    assert run("raise ValueError('no')", refused) == "ValueError: no"
    assert run("raise TypeError('no')", refused) is None
    assert run("pass", refused) is None
    crash = replace(refused, symptom="crash")
    assert "status -6" in str(run("import os; os.abort()", crash))
    assert run("raise ValueError('no')", crash) is None
    assert run("import sys; sys.exit(1)", replace(refused, symptom="value")) is None


def report(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app_of(), ["report", *arguments])
    return result.exit_code, result.stdout, result.stderr


def test_an_issue_is_what_the_project_asks_for(snapshot: SnapshotAssertion, tmp_path: Path) -> None:
    code, text, aside = report("ort-where-negative-zero", "--upstream", "--program", str(tmp_path / "short.py"))
    assert code == 0, aside
    assert "microsoft/onnxruntime" in aside
    plain = re.sub(r"(?m)^(Linux-.*|[\d.]+|x86_64 .*)$", "HERE", text)
    assert plain == snapshot
    assert (tmp_path / "short.py").read_text() in text


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("torch-fsdp-state-aliased", "a training run on ranks"),
        ("ort-rnn-clip", "a whole model"),
        ("torch-vander-gradient", "the question 'gradient'"),
        ("no-such-entry", "neither the id of a known entry nor the folder of a finding"),
    ],
)
def test_what_cannot_be_had_is_one_line(name: str, told: str) -> None:
    code, text, aside = report(name, "--upstream")
    assert code == 2
    assert text == ""
    assert told in aside.replace("\n", "")
    assert aside.count("\n") == 1


def test_triage_of_an_entry_is_told() -> None:
    code, text, _ = report("ort-linf-norm-nan")
    assert code == 0
    assert "severity: silent wrong value" in text
    assert "cause: ort-max-min-nan, 4 instances" in text


def test_titles_and_reasons_know_nothing_of_our_entries() -> None:
    known = entries(FOLDER)
    ids = {one.id for one in known}
    for one in known:
        assert 10 <= len(title(one)) <= 150, one.id
        assert "\n" not in title(one)
        named = set(re.findall(r"[a-z0-9]+(?:-[a-z0-9]+)+", plain_reason(one))) & ids
        assert not named, one.id

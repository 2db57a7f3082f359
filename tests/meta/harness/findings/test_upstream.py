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
from harness.commands.findings.shown import run
from harness.commands.shared.terminal import console
from harness.conversions.edges import EDGES
from harness.findings.known.entry import FOLDER
from harness.findings.triage.words import plain_reason, referred, title
from harness.findings.upstream import routes
from harness.findings.upstream.derived import WRITTEN
from harness.findings.upstream.issue import Shown, issue_of
from harness.findings.upstream.literals import NoProgramError, literal
from harness.findings.upstream.own import written
from harness.findings.upstream.parts import Family
from harness.findings.upstream.seen import Seen, checks, condition, seen_in
from harness.findings.upstream.short import AS_DRAWN, programs
from harness.findings.upstream.tidy import LONGEST, counted, tidy
from harness.questions import QUESTIONS
from oracles.judge.compare import Expected
from oracles.judge.discrepancy import Discrepancy
from oracles.judge.outcome import Value
from oracles.judge.verdict import judge


@pytest.fixture(autouse=True)
def _console(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that turns it to standard error leaves it there, for the commands of other tests, too."""
    monkeypatch.setattr(console, "stderr", False)


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
    lines = checks(seen, Family("", "{kind}({element})"))
    assert f"complex(y[0]).{part}" in lines[0]
    names = {"y": np.array([got]), "inf": inf, "nan": nan, "math": math}
    with pytest.raises(AssertionError):
        exec("\n".join(lines), names)
    exec("\n".join(lines), {**names, "y": np.array([value])})


def planted(question: str = "forward") -> Seen:
    """What a target would have shown whose first result of a small graph is off by one."""
    case = chain_case()
    expected = QUESTIONS[question].expect(case)
    outputs = [np.asarray(v.value, t.dtype) for v, t in zip(expected.values, expected.types, strict=True)]
    outputs[0] = outputs[0].copy()
    outputs[0].flat[0] += 1
    outcome = Value(tuple(outputs))
    discrepancy = judge(expected, outcome).discrepancy
    assert discrepancy, question
    return seen_in(discrepancy, expected, outcome)


@pytest.mark.parametrize("name", ["torch-eager", "ort-all"])
def test_a_short_program_passes_where_nothing_is_wrong(name: str) -> None:
    seen = planted()
    (text, *_) = programs(TARGETS[name], chain_case(), seen)
    assert counted(text) <= LONGEST
    assert "dissent" not in text.lower()
    assert run(text, seen) is None, "the framework is right, so that the assertion holds"
    wrong = replace(seen, value=np.float64(seen.value) + 1)  # type: ignore[arg-type]
    (other, *_) = programs(TARGETS[name], chain_case(), wrong)
    assert "AssertionError" in str(run(other, wrong))


def test_short_programs_read_well(snapshot: SnapshotAssertion) -> None:
    names = ("torch-inductor", "tf-xla", "jax-jit", "tvm-O2", "litert-builtin")
    assert {name: next(programs(TARGETS[name], chain_case(), planted())) for name in names} == snapshot


def test_short_programs_of_derivatives_read_well(snapshot: SnapshotAssertion) -> None:
    asked = [
        *(("gradient", name) for name in ("torch-eager", "torch-inductor", "tf-xla", "jax-jit", "tvm-O2")),
        *(("jvp", name) for name in ("torch-eager", "tf-graph", "jax-eager")),
        *(("hessian", name) for name in ("torch-eager", "torch-inductor", "tf-eager")),
        *(("vmap", name) for name in ("torch-inductor", "tf-graph", "jax-jit")),
        ("tangent_gradient", "torch-eager"),
    ]
    seen = {question: planted(question) for question, _ in asked}
    made = {
        f"{name} {question}": next(programs(TARGETS[name], chain_case(), seen[question], question))
        for question, name in asked
    }
    assert made == snapshot


def test_short_programs_of_conversions_read_well(snapshot: SnapshotAssertion) -> None:
    names = (
        *("torch/torch-onnx/ort-all", "torch/torchscript-onnx/openvino-onnx/openvino", "torch/tvm-pt2/tvm"),
        *("tensorflow/tflite/tvm-tflite/tvm", "tensorflow-variables/openvino-savedmodel/openvino"),
        *("onnx/onnx-opset-10/tvm-onnx/tvm", "tensorflow/tf2onnx/ort-disable"),
    )
    targets = QUESTIONS["conversion"].targets
    made = {name: next(programs(targets[name], chain_case(), planted(), "conversion")) for name in names}
    assert made == snapshot


def test_short_programs_of_quantisers_read_well(snapshot: SnapshotAssertion) -> None:
    names = ("tflite-int8-io", "tflite-dynamic", "ort-qdq-u8s8-channels", "ort-dynamic-s8")
    targets = QUESTIONS["quantisers"].targets
    seen = Seen("rejected", "ValueError: no", type=TensorType("float32", ()))
    made = {name: [*programs(targets[name], chain_case(), seen, "quantisers")] for name in names}
    assert {name: texts[-1] for name, texts in made.items()} == snapshot
    assert {len(texts) for texts in made.values()} == {3}, "the call alone, and two ways to run its result"
    assert all(run(texts[-1], seen) is None for texts in made.values()), "nothing refuses it"


def test_quantisers_that_no_program_is_written_for() -> None:
    targets, refused = QUESTIONS["quantisers"].targets, Seen("rejected", "ValueError: no")
    with pytest.raises(NoProgramError, match="of values of a quantised model none is written"):
        next(programs(targets["tflite-int8"], chain_case(), replace(refused, symptom="value"), "quantisers"))
    with pytest.raises(NoProgramError, match="none is written for the quantiser torch-static-x86"):
        next(programs(targets["torch-static-x86"], chain_case(), refused, "quantisers"))


def test_a_short_gradient_passes_where_nothing_is_wrong() -> None:
    seen = planted("gradient")
    (text, *_) = programs(TARGETS["jax-jit"], chain_case(), seen, "gradient")
    assert run(text, seen) is None
    wrong = replace(seen, value=np.float64(seen.value) + 1)  # type: ignore[arg-type]
    (other, *_) = programs(TARGETS["jax-jit"], chain_case(), wrong, "gradient")
    assert "AssertionError" in str(run(other, wrong))


def test_what_a_tool_refuses_ends_with_the_call_of_that_tool() -> None:
    seen = Seen("rejected", "ValueError: no\nin step torch-onnx", type=TensorType("float32", ()))
    (text,) = programs(QUESTIONS["conversion"].targets["torch/torch-onnx/ort-all"], chain_case(), seen, "conversion")
    assert text.splitlines()[-1].startswith("model = torch.onnx.export(")
    assert "onnxruntime" not in text
    at_tvm = replace(seen, message="ValueError: no\nin step tvm-pt2")
    imported, compiled = programs(
        QUESTIONS["conversion"].targets["torch/tvm-pt2/tvm"], chain_case(), at_tvm, "conversion"
    )
    assert "tvm.compile(" not in imported
    assert "tvm.compile(" in compiled


def test_what_is_written_exists() -> None:
    assert set(routes._CALLS) <= set(EDGES)
    assert {*WRITTEN, *AS_DRAWN} <= set(QUESTIONS)


def test_what_is_read_on_import_stands_before_it() -> None:
    text = tidy(["import os", "", 'os.environ["A"] = "b"  # read', "import numpy as np", "import math", "np.exp(1)"])
    assert text == 'import os\n\nos.environ["A"] = "b"\n\nimport numpy as np\n\nnp.exp(1)\n'


OWN = '''"""A title.

Exit status 1: shows; 0: does not."""

import importlib.util
import sys

for module in ["numpy"]:
    if importlib.util.find_spec(module) is None:
        sys.exit(77)

import numpy as np

got = np.add(1, 1)
'''
LONG = " and ".join(f"np.isclose(got, 2, rtol={bound}, equal_nan=True)" for bound in (0.5, 0.25, 0.125))
ENDS = {
    "wrong = got != 2\nif wrong:\n    print(f'reproduced: {got} is not 2')\n    sys.exit(1)\nprint('not reproduced')":
        'assert got == 2, f"{got} is not 2"',
    "wrong = got > 2 or not got\nprint('reproduced' if wrong else 'not reproduced')\nsys.exit(int(wrong))":
        "assert got <= 2 and got",
    "shown = abs(got) > 2\nprint('reproduced:' if shown else 'not reproduced:', 'error', got)\nsys.exit(shown)":
        "print('error', got)\nassert abs(got) <= 2",
    "if got:\n    print(f'reproduced: status {got}')\n    raise SystemExit(1)\nassert got < 1\nprint('not reproduced')":
        'assert not got, f"status {got}"\nassert got < 1',
    "if got == 2:\n    print('not reproduced')\n    raise SystemExit(0)\nprint(f'reproduced: {got}')\nsys.exit(1)":
        'assert got == 2, f"{got}"',
    f"if {LONG}:\n    print('not reproduced')\n    raise SystemExit(0)\nprint('reproduced')\nraise SystemExit(1)":
        f"assert (\n    {LONG.replace(' and ', chr(10) + '    and ')}\n)",
    "try:\n    got.go()\nexcept AttributeError as error:\n    print(f'reproduced: {error}')\n    sys.exit(1)\n"
    "print('not reproduced')": "got.go()",
}  # fmt: skip
"""How programs of entries end, and what a maintainer is given in its place."""


@pytest.mark.parametrize(("end", "plain"), ENDS.items())
def test_a_program_of_its_own_ends_with_an_assertion(end: str, plain: str) -> None:
    assert written(OWN + end)[0] == f"import numpy as np\n\ngot = np.add(1, 1)\n{plain}\n"


def test_a_program_that_ends_in_another_way_stays_as_it_is() -> None:
    (text,) = written(OWN + "sys.exit(got)")
    assert text == "import sys\n\nimport numpy as np\n\ngot = np.add(1, 1)\nsys.exit(got)\n"
    with pytest.raises(NoProgramError, match="its program has"):
        written(OWN + "got += 1\n" * 100)


def test_refusals_and_crashes_are_told_apart() -> None:
    refused = Seen("rejected", "ValueError: no", type=TensorType("float32", ()))
    assert run("raise ValueError('no')", refused) == "ValueError: no"
    assert run("raise TypeError('no')", refused) is None
    assert run("pass", refused) is None
    assert run("raise ValueError('no')", refused, "yes") is None
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


@pytest.mark.parametrize("name", ["ort-label-encoder-fusion", "torch-vander-gradient"])
def test_issues_of_programs_and_of_gradients_read_well(name: str, snapshot: SnapshotAssertion) -> None:
    code, text, aside = report(name, "--upstream")
    assert code == 0, aside
    assert "the program was run and shows it" in aside
    here = re.sub(r"(?m)^((- )?Linux-.*|[\d.]+|x86_64 .*|- [\w-]+ \d.*|- .*(AMD|Intel|CPU|EPYC).*)$", "HERE", text)
    assert re.sub("(HERE\n)+", "HERE\n", here) == snapshot


def test_a_program_that_no_longer_shows_it_is_one_line(tmp_path: Path) -> None:
    folder = tmp_path / "torch" / "torch-nothing"
    folder.mkdir(parents=True)
    (folder / "issue.toml").write_text(
        'kind = "program"\ntargets = ["torch-eager"]\nsymptoms = ["value"]\npackage = "torch"\nversions = "<=99"\n'
        'reason = "Nothing is wrong any more"\n',
        encoding="utf-8",
    )
    (folder / "reproducer.py").write_text('print("not reproduced")\n', encoding="utf-8")
    code, text, aside = report("torch-nothing", "--upstream", "--known-issues", str(tmp_path))
    assert (code, text) == (2, "")
    assert "its program does not show it here (not reproduced)" in aside.replace("\n", " ")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("torch-fsdp-state-aliased", "a training run on ranks"),
        ("keras-onnx-normalization", "a whole model"),
        ("ort-clip-function-bfloat16", "its program has 659 lines"),
        ("no-such-entry", "neither the id of a known entry nor the folder of a finding"),
    ],
)
def test_what_cannot_be_had_is_one_line(name: str, told: str) -> None:
    code, text, aside = report(name, "--upstream")
    assert code == 2
    assert text == ""
    assert told in aside.replace("\n", "")
    assert aside.count("\n") == 1


def test_what_goes_on_from_another_entry_has_the_reason_of_that() -> None:
    known = {one.id: one for one in entries(FOLDER)}
    one = known["torch-logaddexp-tangent-gradient"]
    cause = known[referred(one)]
    issue = issue_of(one, Shown("torch-eager", None, "pass\n" * 40, "", {"torch": "2.13.0"}), "x", cause)
    assert issue.title.startswith("logaddexp, logaddexp2: second derivatives")
    assert "\nSecond derivatives by way" in issue.text
    assert plain_reason(cause) in issue.text
    assert "The program has 40 lines" in issue.text


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
        assert "Dissent" not in plain_reason(one), one.id

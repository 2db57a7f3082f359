"""Models that are given: inputs, factories, what is made of runs, what is kept and shown, bad input."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from harness.commands import app
from harness.conversions.formats import RUNNERS
from harness.conversions.model_file import FormatError, Port
from harness.execute.pool import Pool
from harness.models.given import factories
from harness.models.given.images import ImagePreprocessing
from harness.models.given.inputs import (
    OTHER,
    drawn,
    read_arrays,
    saved,
    shapes_of,
    span_of,
)  # fmt: skip
from harness.models.given.media import read_preprocessing
from harness.models.layer_errors import Layer, LayerErrors
from harness.models.measure import Run
from harness.models.reference import Reference
from harness.models.report import page, store, words
from harness.models.results import REFERENCE, Results, assemble, groups, incomplete, worst
from harness.models.variants import ModelFile, Refusal, Variant
from oracles.judge.outcome import Rejected, Unsupported, Value
from oracles.models import noise
from oracles.models.agreement import Agreement, Failure

RNG = np.random.default_rng(11)
IMAGES = Port("x", "float32", (None, 3, 4, 5))
GIVEN = ModelFile(Path("net.pt2"), "pt2")
CONVERTED = ModelFile(Path("net.onnx"), "onnx", ("torch-onnx",), (("torch", "2.13.0"),))
OUTPUTS = [Port("scores", "float32", (4, 10))]


# ---- inputs -------------------------------------------------------------------------------------------------


def test_inputs_are_drawn_by_seed_and_signature() -> None:
    ports = [IMAGES, Port("ids", "int64", (None, None)), Port("flag", "bool", (2,))]
    first, second = drawn(ports, 3, 2, {})
    assert [array.shape for array in first] == [(1, 3, 4, 5), (1, OTHER), (2,)]
    assert [str(array.dtype) for array in first] == ["float32", "int64", "bool"]
    assert (first[0] != second[0]).any()
    assert all((a == b).all() for a, b in zip(first, drawn(ports, 3, 1, {})[0], strict=True))
    shaped = drawn(ports, 3, 1, {"ids": (2, 7)}, (0, 1))[0]
    assert shaped[1].shape == (2, 7)
    assert 0 <= shaped[0].min() <= shaped[0].max() <= 1
    assert set(np.unique(shaped[1])) <= {0, 1}


@pytest.mark.parametrize(
    ("shapes", "told"),
    [
        ({"y": (1,)}, "the model has no input 'y'; it has x"),
        ({"x": (1, 3, 4, 6)}, "cannot have the shape (1, 3, 4, 6)"),
    ],
)
def test_shapes_that_do_not_fit(shapes: dict, told: str) -> None:
    with pytest.raises(FormatError, match=re.escape(told)):
        drawn([IMAGES], 0, 1, shapes)


def test_arrays_are_read_by_name_by_order_and_in_sets(tmp_path: Path) -> None:
    a, b = RNG.normal(size=(2, 1, 3, 4, 5)).astype(np.float32), RNG.normal(size=(2, 6)).astype(np.float32)
    ports = [IMAGES, Port("z", "float32", (6,))]
    np.savez(tmp_path / "named.npz", z=b, x=a)
    np.savez(tmp_path / "ordered.npz", a, b)
    for name in ("named", "ordered"):
        sets = read_arrays(tmp_path / f"{name}.npz", ports)
        assert len(sets) == 2
        assert all((sets[i][0] == a[i]).all() and (sets[i][1] == b[i]).all() for i in range(2))
    np.savez(tmp_path / "again.npz", allow_pickle=False, **saved(sets, ports))
    assert all(
        (x == y).all()
        for one, two in zip(sets, read_arrays(tmp_path / "again.npz", ports), strict=True)
        for x, y in zip(one, two, strict=True)
    )
    np.savez(tmp_path / "rows.npz", x=RNG.normal(size=(6, 3)))
    rows = read_arrays(tmp_path / "rows.npz", [Port("x", "float32", (2, 3))])
    assert [one[0].shape for one in rows] == [(2, 3)] * 3


@pytest.mark.parametrize(
    ("arrays", "told"),
    [
        ({"x": np.zeros((1, 3, 4, 6))}, "float64[1, 3, 4, 6] does not fit input x: float32[?,3,4,5]"),
        ({"x": np.zeros((1, 3, 4, 5), complex)}, "complex128 does not fit"),
        ({"x": np.zeros(1), "y": np.zeros(1)}, "has 2 arrays; the model takes 1"),
    ],
)
def test_arrays_that_do_not_fit(arrays: dict, told: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", allow_pickle=False, **arrays)
    with pytest.raises(FormatError, match=re.escape(told)):
        read_arrays(tmp_path / "a.npz", [IMAGES])


def test_files_that_are_no_arrays(tmp_path: Path) -> None:
    (tmp_path / "a.npz").write_text("text")
    with pytest.raises(FormatError, match=r"cannot read .*a\.npz as \.npz"):
        read_arrays(tmp_path / "a.npz", [IMAGES])
    with pytest.raises(FormatError, match="/dev/zero: not a plain file"):  # which has no end
        read_arrays(Path("/dev/zero"), [IMAGES])
    np.savez(tmp_path / "p.npz", x=np.array([{}], object))
    with pytest.raises(FormatError, match=r"cannot read .*p\.npz"):  # pickle is never loaded
        read_arrays(tmp_path / "p.npz", [IMAGES])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("size = [4]", "$.size: Expected `array` of length 2, got 1"),
        ("", "$: Object missing required field `size`"),
        ("size = [4, 5]\nlayout = 'chw'", "$.layout: Invalid enum value 'chw'"),
        ("size = [4, 5]\nstd = [1, 0, 1]", "$.std: cannot be (1.0, 0.0, 1.0)"),
        ("size = [4, 5]\ncrop = 3", "$.crop: unknown key; there are channels"),
        ("size = [4, 5", "Unclosed array"),
    ],
)
def test_preprocessing_that_cannot_be(text: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "how.toml").write_text(text)
    with pytest.raises(FormatError, match=re.escape(told)):
        read_preprocessing(tmp_path / "how.toml", ImagePreprocessing)


def test_shapes_and_ranges_as_polygraphy_writes_them() -> None:
    assert shapes_of(["x:[1,3,224,224]", "[2, 4]"]) == {"x": (1, 3, 224, 224), "": (2, 4)}
    assert span_of("[-1, 2.5]") == (-1, 2.5)
    for text, read in (("x:1,2", lambda t: shapes_of([t])), ("[2,1]", span_of), ("0,1", span_of)):
        with pytest.raises(FormatError):
            read(text)


# ---- what is made of runs -----------------------------------------------------------------------------------


def results_of(**changed: np.ndarray | None) -> Results:
    """Four variants on two sets of inputs, all right but for those that are given. None: it is refused."""
    rng = np.random.default_rng(12)
    exact = rng.normal(size=(2, 4, 10))
    noisy = exact + 1e-6 * rng.normal(size=(noise.RUNS, 2, 4, 10))
    expected = tuple(noise.expect(["scores"], ["float32"], [exact[k]], [noisy[:, k]]) for k in range(2))
    runs = []
    names = ("torch-exported", "ort-all", "ort-basic", "ort-disable")
    for place, name in enumerate(names):
        variant = Variant(GIVEN if name == "torch-exported" else CONVERTED, RUNNERS[name])
        right = exact.astype(np.float32)
        key = name.replace("-", "_")
        change = changed.get(key, np.zeros(1, np.float32))
        if change is None:
            runs.append(Run(variant, [Value((right[0],)), Rejected("RuntimeError", "no kernel")]))
            continue
        values = right + change
        seconds = [(1 + 0.4 * (name == "ort-all") + 0.01 * np.sin(7 * r + place)) * 1e-3 for r in range(8)]
        runs.append(Run(variant, [Value((v,)) for v in values], seconds, [(values[0],)] * 8))
    reference = Reference(expected, "made up")
    refusals = [Refusal("torchscript-onnx", "RuntimeError: no <b>such</b> operator")]
    return assemble(GIVEN, [IMAGES], OUTPUTS, reference, runs, refusals, 0, 8, {"torch": "2.13.0"})


def test_right_runs_agree() -> None:
    results = results_of()
    assert results.headline == "All 4 variants return what a correct evaluation may return."
    assert [row.status for row in results.rows] == ["agree"] * 4
    assert all(row.spread == 0 for row in results.rows)
    pair = results.pairs[REFERENCE, "ort-all (torch-onnx)"]
    assert isinstance(pair, Agreement)
    assert (pair.rows, pair.top1) == (8, 1)
    assert groups(results, "library") == {
        "torch": ["torch-exported"],
        "ort": ["ort-all (torch-onnx)", "ort-basic (torch-onnx)", "ort-disable (torch-onnx)"],
    }
    assert list(groups(results, "optimisation")) == ["exported", "all", "basic", "disable"]
    assert list(groups(results, "device")) == ["cpu"]
    assert worst(results, ["torch-exported"], ["ort-all (torch-onnx)", "ort-basic (torch-onnx)"], "top1") == 1


def test_a_difference_that_fixed_tolerances_pass_is_a_deviation() -> None:
    shift = np.zeros((2, 4, 10), np.float32)
    shift[1, 2, 3] = 5e-5
    results = results_of(ort_basic=shift)
    assert results.headline == "1 of 4 variants deviate."
    (row,) = results.deviating
    assert row.variant.name == "ort-basic (torch-onnx)"
    assert row.message.startswith("1 of 2 sets of inputs: mismatched 1 of 40")
    assert row.ratio is not None
    assert row.ratio > 3
    assert np.allclose(shift, 0, atol=1e-4)


def test_a_missing_result_is_a_failure_everywhere() -> None:
    results = results_of(ort_basic=None)
    (row,) = results.deviating
    assert (row.status, row.message) == ("rejected", "1 of 2 sets of inputs: RuntimeError: no kernel")
    name = row.variant.name
    assert all(isinstance(results.pairs[name, other], Failure) for other in groups(results, "device")["cpu"])
    assert worst(results, [name], ["ort-all (torch-onnx)"], "top1") is None
    assert worst(results, ["torch-exported"], [name, "ort-all (torch-onnx)"], "top1") == 1
    assert incomplete(results, ["torch-exported"], [name, "ort-all (torch-onnx)"])
    assert not incomplete(results, ["torch-exported"], ["ort-all (torch-onnx)"])


def test_a_documented_refusal_is_no_deviation_and_no_agreement() -> None:
    results = results_of()
    exact = Reference(None, "no reference")
    runs = [Run(row.variant, [Value((np.ones((4, 10), np.float32),))]) for row in results.rows]
    runs[1] = Run(runs[1].variant, [Unsupported("no FusedConv")])
    found = assemble(GIVEN, [IMAGES], OUTPUTS, exact, runs, [], 0, 0, {})
    assert (found.rows[1].status, found.rows[1].deviates) == ("unsupported", False)
    assert found.refusals == (Refusal("ort-all (torch-onnx)", "no FusedConv"),)
    assert isinstance(found.pairs["torch-exported", "ort-all (torch-onnx)"], Failure)


def test_a_variant_that_is_optimised_more_and_slower_is_a_finding_of_its_own() -> None:
    results = results_of()
    assert not results.deviating
    found = {(r.kind, r.slower.runner.name, r.faster.runner.name) for r in results.regressions}
    assert found == {("optimisation", "ort-all", "ort-basic"), ("optimisation", "ort-all", "ort-disable")}
    assert results.difference is not None
    assert results.difference.rejected


def test_without_a_reference_nothing_is_judged_but_all_is_compared() -> None:
    runs = [Run(Variant(GIVEN, RUNNERS["torch-exported"]), [Value((np.ones((1, 3), np.float32),))])]
    runs += [Run(Variant(CONVERTED, RUNNERS["ort-all"]), [Rejected("RuntimeError", "no")])]
    results = assemble(GIVEN, [], OUTPUTS, Reference(None, "no reference: why"), runs, [], 0, 0, {})
    assert [row.status for row in results.rows] == ["not judged", "rejected"]
    assert (REFERENCE, "torch-exported") not in results.pairs
    assert len(results.deviating) == 1
    page.html_of(results)


# ---- what is kept and shown ---------------------------------------------------------------------------------


def test_files_lie_by_optimisation_device_and_library(tmp_path: Path) -> None:
    results = results_of(ort_basic=None)
    runs = [Run(row.variant, [Value((np.ones((4, 10), np.float32),))] * 2) for row in results.rows]
    told = store.write(tmp_path, results, runs, ((np.zeros((1, 3, 4, 5), np.float32),),) * 2)
    kept = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert "basic/cpu/ort/ort-basic_torch-onnx.error.txt" in kept
    assert "basic/cpu/ort/ort-basic_torch-onnx/reproducer.py" in kept
    assert told == [f"ort-basic (torch-onnx): {tmp_path}/basic/cpu/ort/ort-basic_torch-onnx/reproducer.py"]
    assert "all/cpu/ort/ort-all_torch-onnx.npz" in kept
    assert "exported/cpu/torch/torch-exported_as_given.json" in kept
    assert not any("error" in name for name in kept if "basic" not in name)
    assert "no kernel" in (tmp_path / "basic/cpu/ort/ort-basic_torch-onnx.error.txt").read_text()
    told = json.loads((tmp_path / "results.json").read_text())
    assert told["headline"] == results.headline
    assert [one["status"] for one in told["variants"]] == ["agree", "agree", "rejected", "agree"]
    rows = list(csv.DictReader(io.StringIO((tmp_path / "pairs.csv").read_text())))
    assert len(rows) == 25
    assert sum(bool(row["failure"]) for row in rows) == 9
    assert {row["top1"] for row in rows if not row["failure"]} == {"1.0"}


def test_the_layer_at_fault_is_named() -> None:
    layers = (Layer(0, "a", "Relu", "v0", 0.0, 0.0, 0.0), Layer(1, "b", "Conv", "v1", 1e-3, 62.0, 2e-3))
    unseen = Layer(2, "c", "Add", "v2", math.nan, math.nan, math.nan)
    told = "the error begins at b (Conv, 2 of 3): 62 times what it may add, given its inputs"
    right = results_of()
    assert words.blamed(LayerErrors("ort-all", (*layers, unseen)), right) == told
    assert words.blamed(LayerErrors("ort-all", layers[:1]), right).startswith("none of 1 layers adds more error")
    assert words.blamed(LayerErrors("ort-all", why="no names"), right) == "its layers could not be compared: no names"


# ---- factories and bad input --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def workers() -> Iterator[Pool]:
    with Pool() as pool:
        yield pool


FACTORY = """
import numpy as np


def network():
    import onnx
    from onnx import TensorProto, helper

    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 3])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, 3])
    graph = helper.make_graph([helper.make_node("Tanh", ["x"], ["y"])], "g", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    return model, (np.ones((2, 3), np.float32),)


def nothing():
    return 3
"""


def test_factories(workers: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_network.py").write_text(FACTORY)
    monkeypatch.chdir(tmp_path)
    made = factories.make(workers, "my_network:network", tmp_path / "made", 0)
    assert made.path == tmp_path / "made.onnx"
    assert made.path.exists()
    assert made.inputs[0].shape == (2, 3)
    wrong = {
        "my_network:nothing": "it returns a int, no Keras model, torch.nn.Module or onnx.ModelProto",
        "my_network:absent": "my_network has no function absent",
        "no_such_module:f": "no_such_module cannot be imported: No module named 'no_such_module'",
    }
    for name, told in wrong.items():
        with pytest.raises(FormatError, match=re.escape(f"{name} makes no model: ")) as error:
            factories.make(workers, name, tmp_path / "made", 0)
        assert told in str(error.value)


def failing(*arguments: str) -> str:
    """The one line of a command that ends with status 2."""
    result = CliRunner().invoke(app.app_of(), ["model", *arguments])
    assert result.exit_code == 2, result.output
    return " ".join(result.stderr.split())


def test_bad_input_gets_one_line(tmp_path: Path) -> None:
    (tmp_path / "m.pt").write_bytes(b"\x80\x04")
    (tmp_path / "m.keras").write_bytes(b"text")
    (tmp_path / "m.onnx").write_bytes(b"no protobuf")
    out = ("--out", str(tmp_path / "out"))
    assert failing(str(tmp_path / "absent.onnx"), *out).endswith("absent.onnx does not exist")
    assert "refused unless it is trusted (--trust)" in failing(str(tmp_path / "m.pt"), *out)
    assert "is not of format keras: it is not a zip archive" in failing(str(tmp_path / "m.keras"), *out)
    assert "is refused unless it is trusted (--trust): model: not protobuf" in failing(str(tmp_path / "m.onnx"), *out)
    assert "is not a shape such as" in failing(str(tmp_path / "m.onnx"), "--input-shapes", "3x4", *out)
    assert "--weights are for what a function makes" in failing(str(tmp_path / "m.onnx"), "--weights", "w.h5", *out)
    (tmp_path / "file").write_text("")
    assert "cannot write" in failing(str(tmp_path / "m.onnx"), "--out", str(tmp_path / "file" / "out"))

"""Language models with a cache of keys and values: which inputs it is, steps of decoding judged one by one, and all
tokens at once."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from examples.commands import model as command
from examples.decoders import EXPORT, Form, decoder

from harness.conversions.formats import RUNNERS
from harness.conversions.model_file import Port, Signature
from harness.models.given.decoding import cache_of, drawing, roles_of
from oracles.models import decoding

BEFORE = "arrays[3].shape[2]"
"""Tokens in the cache that a runner is given."""
FAULTS = {
    "late": f"return [found[0] * 1.01, *found[1:]] if {BEFORE} == 3 else found",
    "steps": f"return [found[0] + 1e-3, *found[1:]] if {BEFORE} and arrays[0].shape[1] == 1 else found",
    "prompts": "return [found[0] + 1e-3, *found[1:]] if arrays[0].shape[1] > 1 else found",
    "cache": f"return [found[0], found[1] * (1 + 1e-3 * ({BEFORE} == 1)), *found[2:]]",
    "none": f"return found[:1] if {BEFORE} == 2 else found",
}
"""What runners that are planted make of the right outputs, by name."""
TOLD = {
    "late": "1 of 8 sets of inputs: step 3 of decoding: mismatched 40 of 40",
    "steps": "5 of 8 sets of inputs: step 1 of decoding: mismatched 40 of 40",
    "prompts": "2 of 8 sets of inputs: all 5 tokens at once: mismatched 200 of 200",
    "cache": "4 of 8 sets of inputs: step 1 of decoding: mismatched 32 of 32",
    "none": "3 of 8 sets of inputs: step 2 of decoding: 1 outputs instead of 5",
}


def examined(path: Path, targets: str, out: Path) -> tuple[int, str]:
    few = "--no-conversions", "--iterations", "1", "--runs", "0"
    return command(path, "--targets", targets, *few, "--out", out)


def plant(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    right = RUNNERS["ort-disable"]
    text = f"{right.open}\n\nright_model = open_model\n\n\ndef open_model(path):\n"
    text += "    inputs, outputs, ask = right_model(path)\n\n    def call(*arrays):\n        found = ask(*arrays)\n"
    text += f"        {FAULTS[name]}\n\n    return inputs, outputs, call\n"
    planted = replace(right, name=f"odd-{name}", framework="odd", open=text, owner=name)
    monkeypatch.setitem(RUNNERS, planted.name, planted)


def test_steps_that_are_wrong_are_found_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in FAULTS:
        plant(monkeypatch, name)
    onnx.save(decoder(), tmp_path / "net.onnx")
    status, told = examined(tmp_path / "net.onnx", "ort-disable,odd-*", tmp_path / "out")
    assert status == 1, told
    assert "5 of 6 variants deviate." in told
    assert (
        "decoding: 4 steps of 1 token after 1 token with an empty cache, and 5 tokens at once: 4 of 5 variants" in told
    )
    assert "return something else at once, odd-late by" in told
    for name, line in TOLD.items():
        assert f"odd-{name}: mismatch: {line}" in told, told
    program = tmp_path / "out/late/cpu/odd/odd-late_as_given/reproducer.py"
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "reproduced"), done.stdout
    assert "Decoding: 4 steps" in (tmp_path / "out/report.html").read_text(encoding="utf-8")


@pytest.mark.slow(one_in=3)
@pytest.mark.parametrize("form", ["plain", "multi-head", "grouped"])
def test_right_decoders_agree_at_every_step(form: Form, tmp_path: Path) -> None:
    onnx.save(decoder(form), tmp_path / "net.onnx")
    status, told = examined(tmp_path / "net.onnx", "ort-disable", tmp_path / "out")
    assert status == 0, told
    assert "The variant returns what a correct evaluation may return." in told
    assert "and 5 tokens at once: the same in all 1 variants, 0.0" in told
    assert "masks are 1 and positions go on from the end of the cache" in told


def test_a_model_that_is_two_functions_is_no_fault_of_a_variant(tmp_path: Path) -> None:
    onnx.save(decoder(forgets=True), tmp_path / "net.onnx")
    status, told = examined(tmp_path / "net.onnx", "ort-disable", tmp_path / "out")
    assert status == 0, told
    assert "the reference itself is apart" in told
    assert "the model is another function of several tokens than of one" in told


@pytest.mark.slow(ci=2)
@pytest.mark.parametrize("width", [1, 0])
def test_a_decoder_of_pytorch(width: int, tmp_path: Path) -> None:
    """width: of new tokens, as the file fixes it (0: it does not)."""
    made = subprocess.run(
        [sys.executable, "-c", EXPORT, tmp_path / "net.pt2", str(width)], capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr
    few = "--edges", "torch-onnx", "--depth", "1", "--iterations", "1", "--runs", "0", "--out", tmp_path / "out"
    status, told = command(tmp_path / "net.pt2", "--targets", "torch-exported,ort-all", *few)
    assert status == 0, told
    assert "All 2 variants return what a correct evaluation may return." in told
    assert "4 steps of 1 token after 1 token with an empty cache" in told
    assert ("other numbers of tokens are refused" if width else "the same in all 2 variants, 0.") in told


def ports(*sides: dict[str, tuple[int | None, ...]], dtype: str = "float32") -> Signature:
    return Signature(*(tuple(Port(name, dtype, shape) for name, shape in side.items()) for side in sides))


GROWING, FIXED = (1, 2, None, 8), (1, 2, 16, 8)


@pytest.mark.parametrize(
    ("told", "pairs"),
    [
        (ports({"x": (1,), "past_key_values.0.key": GROWING}, {"present.0.key": GROWING, "y": (1,)}), [(1, 0)]),
        (ports({"past_0": GROWING, "past_1": GROWING}, {"present_1": GROWING, "present_0": GROWING}), [(0, 1), (1, 0)]),
        (ports({"k_cache_in": GROWING}, {"y": (1,), "k_cache_out": GROWING}), [(0, 1)]),
        (ports({"past_0": GROWING, "past_1": GROWING}, {"a": (1,), "b": GROWING, "c": GROWING}), [(0, 1), (1, 2)]),
        (ports({"past_0": FIXED}, {"present_0": FIXED}), []),
        (ports({"past_0": GROWING}, {"present_0": (1, 3, None, 8)}), []),
        (ports({"state": GROWING}, {"stateN": GROWING}), []),
        (ports({"past_0": GROWING}, {"present_0": GROWING}, dtype="int64"), []),
        (ports({"past": (None, 8)}, {"present": (None, 8)}), []),
    ],
)  # fmt: skip
def test_what_is_a_cache(told: Signature, pairs: list[tuple[int, int]]) -> None:
    found = cache_of(told)
    assert (list(found.pairs) if found else []) == pairs
    assert found is None or set(found.axes) == {2}


def test_masks_and_positions_fit_the_cache() -> None:
    inputs = (
        Port("input_ids", "int64", (None, None)),
        Port("attention_mask", "int64", (None, None)),
        Port("position_ids", "int64", (None, None)),
        Port("past.0", "float32", (None, 2, None, 8)),
        Port("use_cache_branch", "bool", (1,)),
        Port("encoder_attention_mask", "int64", (None, None)),
    )
    told = Signature(inputs, (Port("present.0", "float32", (None, 2, None, 8)),))
    cache = cache_of(told)
    assert cache is not None
    roles = roles_of(inputs, cache)
    assert (roles.tokens, roles.masks, roles.places, roles.flags) == ((0,), (1,), (2,), (4,))
    assert roles.shapes(inputs, cache, 3, 2) == {
        "input_ids": (1, 2),
        "attention_mask": (1, 5),
        "position_ids": (1, 2),
        "past.0": (1, 2, 3, 8),
    }
    shapes, settle = drawing(told, {"input_ids": (1, 2)}, {"position_ids": 10})
    assert shapes["past.0"] == (1, 2, 5, 8)
    assert shapes["input_ids"] == (1, 2)
    sizes = (1, 2), (1, 5), (1, 2), (1, 2, 3, 8), (1,), (1, 4)
    arrays = [np.zeros(shape, port.dtype) for port, shape in zip(inputs, sizes, strict=True)]
    _, mask, places, _, flag, other = settle(arrays)
    assert mask.tolist() == [[1] * 5]
    assert places.tolist() == [[3, 4]]
    assert flag.tolist() == [True]
    assert other.tolist() == [[0] * 4]


def test_one_by_one_and_at_once() -> None:
    whole = np.arange(12.0).reshape(1, 3, 4)
    steps = [whole[:, place : place + 1] for place in range(3)]
    cache = np.ones((1, 2, 3, 8))
    caches = [cache[:, :, : place + 1] for place in range(3)]
    found = decoding.joined(steps, whole.shape)
    assert found is not None
    assert np.array_equal(found, whole)
    assert decoding.joined(caches, cache.shape) is caches[-1]
    assert decoding.joined([np.zeros((1, 2))], (1, 3)) is None
    pairs = list(zip(steps, caches, strict=True))
    assert decoding.apart((whole, cache), pairs, None, ()) == 0
    off = [*pairs[:2], (steps[2] + 1.1, caches[2])]
    assert decoding.apart((whole, cache), off, None, ()) == pytest.approx(0.1)
    nan = [*pairs[:2], (steps[2] * np.nan, caches[2])]
    assert decoding.apart((whole, cache), nan, None, ()) == np.inf
    assert decoding.apart((np.zeros((1, 9)),), [(np.zeros((1, 2)),)], None, ()) is None
    assert decoding.apart((np.array([1, 2]),), [(np.array([1, 3]),)], None, ()) == np.inf

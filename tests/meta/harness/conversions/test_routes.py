"""All routes as the targets of a question: by name, each made when it is asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

from harness.backends.target.target import Target
from harness.conversions.route import LONGEST, Routes, listed, target_of


def test_every_route_is_a_target() -> None:
    found = Routes()
    assert list(found) == list(listed())
    assert len(found) > 4000
    name = next(name for name in found if name.count("/") == LONGEST)
    assert found[name] is target_of(name)
    assert found[name].name == name


@pytest.mark.parametrize("name", ["nowhere", "torch", "torch/torch-onnx", "onnx/tvm-onnx/ort-all"])
def test_what_is_no_route(name: str) -> None:
    assert name not in Routes()
    with pytest.raises(KeyError):
        Routes()[name]


def test_none_is_made_before_it_is_asked_for() -> None:
    """Every command imports all questions."""
    made = "from harness.questions import QUESTIONS; from harness.conversions.route import target_of"
    said = f"{made}; print(target_of.cache_info().currsize, len(QUESTIONS['conversion'].targets) > 4000)"
    done = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "True"]
    assert isinstance(Routes()[listed()[0]], Target)

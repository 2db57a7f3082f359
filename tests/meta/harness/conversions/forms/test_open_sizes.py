"""Programs of PyTorch that are exported with open sizes."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.conversions.edges import EDGES
from harness.conversions.route import draw_route, route_of, target_of, writer_of

NAME = "torch-open/tvm-pt2/tvm"


def test_sizes_that_a_program_does_not_fix_are_open(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    program: dict[str, Any] = {
        "torch": torch,
        "INPUTS": {"x": ("float32", (3, 1)), "y": ("float32", (3, 2))},
        "PARAMETERS": {"w": ("float32", (2,))},
        "model": lambda x, y, w: (x + y) * w,
    }
    exec(writer_of(route_of(target_of(NAME))).write, program)
    program["write"]({"w": np.ones(2, np.float32)}, tmp_path / "open.pt2")
    exported = torch.export.load(tmp_path / "open.pt2")
    shapes = {node.name: node.meta["val"].shape for node in exported.graph.find_nodes(op="placeholder")}
    (x, y) = [shapes[name] for name in exported.graph_signature.user_inputs]
    assert [isinstance(size, int) for size in (*x, *y)] == [False, True, False, True]  # 1 stays, and w fixes 2
    assert x[0] == y[0]


def test_known_issues_of_fixed_sizes_hold() -> None:
    assert "torch/tvm-pt2/tvm" in target_of(NAME).inherits


def test_no_route_is_drawn_that_begins_so() -> None:
    here = [edge for edge in EDGES.values() if edge.source == "pt2"]
    drawn = {draw_route(random.Random(seed), here).writer for seed in range(40)}
    assert drawn == {"torch"}

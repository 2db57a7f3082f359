"""What the kernels of this processor cannot compute."""

from __future__ import annotations

import pytest

from harness.execute import machine

SATURATING = ("torchao-pt2e-x86-dynamic", "torch-static-onednn", "ort-qdq-u8s8-channels")
"""Paths whose kernels add two products of uint8 and int8 in 16 bits, and saturate, on x86 processors without VNNI, as
ONNX Runtime ("Quantize ONNX models", on U8S8) and PyTorch (`reduce_range` of oneDNN's back end) document."""


@pytest.fixture(autouse=True)
def _exact_sums(request: pytest.FixtureRequest) -> None:
    """Skip runs that are taken to be correct where the processor's are not."""
    x86 = machine.has("sse2")
    if x86 and not (machine.has("avx512_vnni") or machine.has("avx_vnni")):
        name = request.node.name
        if name in {f"test_a_correct_run_is_accepted[{path}]" for path in SATURATING}:
            pytest.skip("without VNNI the kernel saturates sums of two products, as documented")

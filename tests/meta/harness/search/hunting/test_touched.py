"""Which operators a diff touches: by names of files and functions, and by long names in what changed."""

from __future__ import annotations

import pytest

from harness.search.hunting.touched import touched, words


def diff(path: str = "src/other.cc", function: str = "", line: str = "+  x = 1;") -> str:
    return f"--- a/{path}\n+++ b/{path}\n@@ -3 +3 @@ {function}\n{line}\n"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (diff("aten/native/cpu/UpSampleNearestKernel.cpp"), "upsample_nearest"),
        (diff("core/providers/cpu/math/softmax.cc"), "softmax"),
        (diff(function="void cumsum_cpu_kernel(const Tensor& self)"), "cumsum"),
        (diff(function="Status Softplus<float>::Compute(OpKernelContext* ctx)"), "softplus"),
        (diff(line="+  auto r = calc_erfinv(x);"), "erfinv"),
        (diff(line="-  return tf.math.reduce_logsumexp(x);"), "logsumexp"),
        (diff("lax/lax.py", "def _max_lower(ctx, x):"), "max"),
    ],
)
def test_what_is_named(text: str, found: str) -> None:
    assert found in touched(text)
    assert len(touched(text)) < 12


@pytest.mark.parametrize(
    "text", ["", diff("docs/README.md"), diff(line="+  add(max(a, b)); reshape(c); constant(d, 'float32');")]
)
def test_what_is_not(text: str) -> None:
    """Short names and what everything calls stand for nothing."""
    assert set(touched(text)) <= {"reshape"}


def test_every_operator_has_a_name() -> None:
    assert all(words().values())
    assert "resize" not in words()["take"]

"""Artefacts of jax.export that an attacker would send, and such that nobody should refuse."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

Build = Callable[[Path, Path], Path]


def _exported(function: Callable[[Any], Any] | None = None) -> Any:
    import jax
    from jax import export

    shape = jax.ShapeDtypeStruct((2, 2), np.float32)
    return export.export(jax.jit(function or (lambda x: x + 1)), platforms=["cpu"])(shape)


def _of(made: Callable[[], Any]) -> Build:
    def build(folder: Path, marker: Path) -> Path:
        path = folder / "model.stablehlo"
        data = made()
        path.write_bytes(data if isinstance(data, bytes) else bytes(data.serialize()))
        return path

    return build


def _module(text: str) -> Any:
    from jax._src.interpreters import mlir
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo

    with mlir.make_ir_context():
        whole = f"module {{ func.func public @main(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {{ {text} }} }}"
        module = stablehlo.serialize_portable_artifact_str(str(ir.Module.parse(whole)), "1.8.0")
    return replace(_exported(), mlir_module_serialized=module)


def _call(target: str) -> Build:
    return _of(
        lambda: _module(
            f'%y = stablehlo.custom_call @"{target}"(%x) : (tensor<2x2xf32>) -> tensor<2x2xf32> '
            "func.return %y : tensor<2x2xf32>"
        )
    )


def _svd(x: Any) -> Any:
    import jax.numpy as jnp

    return jnp.linalg.svd(x)[1]


def _solve(x: Any) -> Any:
    import jax.numpy as jnp

    return jnp.linalg.solve(x, x) + jnp.linalg.cholesky(x) + jnp.linalg.eigvalsh(x) + jnp.fft.fft(x).real


def _loops(x: Any) -> Any:
    from jax import lax

    x = lax.while_loop(lambda c: c.sum() < 9, lambda c: c + 1, x)
    return lax.scan(lambda c, row: (c + row, lax.cond(row[0] > 0, lax.sin, lax.cos, row)), x[0], x)


def _tail() -> bytes:
    data = bytes(_exported().serialize())
    return data[: len(data) // 2]


def _symbolic(power: bytes) -> bytes:
    """A dimension that is another text, as long as the one that jax wrote."""
    import jax
    from jax import export

    (size,) = export.symbolic_shape("abcdefgh")
    shape = jax.ShapeDtypeStruct((size, 2), np.float32)
    data = bytes(export.export(jax.jit(lambda x: x + 1), platforms=["cpu"])(shape).serialize())
    assert len(power) == 8
    return data.replace(b"abcdefgh", power)


def _named() -> bytes:
    """A node of a type that somebody else registered."""
    import collections

    data = bytes(_exported(lambda x: collections.OrderedDict(a=x)).serialize())
    return data.replace(b"collections.OrderedDict", b"collections.UserDict\0\0\0")


_TOKEN = "%t = stablehlo.create_token : !stablehlo.token "

HOSTILE: dict[str, Build] = {
    "infeed": _of(
        lambda: _module(
            _TOKEN + '%y, %u = "stablehlo.infeed"(%t) {infeed_config = ""} : (!stablehlo.token) -> '
            "(tensor<2x2xf32>, !stablehlo.token) func.return %y : tensor<2x2xf32>"
        )
    ),
    "outfeed": _of(
        lambda: _module(
            _TOKEN + '%u = "stablehlo.outfeed"(%x, %t) {outfeed_config = ""} : (tensor<2x2xf32>, !stablehlo.token) -> '
            "!stablehlo.token func.return %x : tensor<2x2xf32>"
        )
    ),
    "dimension": _of(lambda: _symbolic(b"a^999999")),
    "dimension-code": _of(lambda: _symbolic(b'exit("")')),
    "custom-type": _of(_named),
    "callback": _call("xla_python_cpu_callback"),
    "ffi-callback": _call("xla_ffi_python_cpu_callback"),
    "partitioned-callback": _call("xla_ffi_partitioned_python_cpu_callback"),
    "tpu": _call("tpu_custom_call"),
    "mosaic": _call("mosaic_gpu_v2"),
    "triton": _call("__gpu$xla.gpu.triton"),
    "tensorflow": _call("tf.call_tf_function"),
    "cut": _of(_tail),
    "garbage": _of(lambda: b"\xff" * 5000),
    "module": _of(lambda: replace(_exported(), mlir_module_serialized=b"ML\xefRgarbage")),
    "terminal": _of(lambda: replace(_exported(), fun_name="\x1b]0;owned\x07")),
}
HARMLESS: dict[str, Build] = {
    "plus": _of(_exported),
    "svd": _of(lambda: _exported(_svd)),
    "solve": _of(lambda: _exported(_solve)),
    "loops": _of(lambda: _exported(_loops)),
    "ordered": _of(lambda: _exported(lambda x: OrderedDict(b=x, a=[x, None]))),
    "symbolic": _of(lambda: _symbolic(b"b_of_it8")),
    "gradient": _of(lambda: bytes(_exported().serialize(vjp_order=2))),
    "dict": _of(lambda: _exported(lambda x: {"a": x, "b": (x, x)})),
}

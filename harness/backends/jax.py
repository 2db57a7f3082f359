"""JAX: operation by operation, and the whole function through jit (XLA), also with its fast math, on the CPU and on
CUDA."""

from __future__ import annotations

from harness.backends.programs import (
    control_flow,
    dynamic_gradient,
    hessian,
    jvp,
    scalars,
    state,
    tangent_gradient,
    tangent_tangent,
    vmap,
)
from harness.backends.programs.gradient import JAX_EAGER, JAX_JIT
from harness.backends.target import passes
from harness.backends.target.arithmetic import XLA_FAST, XLA_FASTEST
from harness.backends.target.cuda import jax_on_cuda, on_cuda
from harness.backends.target.target import Level, Target
from harness.backends.target.text import swapped
from harness.dialects import JAX

REFUSES: dict[tuple[str, str], str] = {
    ("short_time_fourier", "float16"): "jnp.fft.fft makes complex64 of float16, and jnp.fft.rfft refuses it",
}
"""(operator, dtype) that the dialect can say and JAX has no kernel for."""

_MODULES = ("jax", "jax.numpy")
_PACKAGES = {"jax": "0.5"}

_LOAD = """
def load(parameters):
    with jax.default_device(jax.devices("cpu")[0]):  # also where there is a GPU
        bound = [jnp.asarray(parameters[name]) for name in PARAMETERS]

    def apply(*inputs):
        return model(*inputs, *bound)

    compiled = {compiled}

    def run(*inputs):
        with jax.default_device(jax.devices("cpu")[0]):
            return [np.asarray(output) for output in compiled(*[jnp.asarray(x) for x in inputs])]

    return run
"""

_SYMBOLIC = """
def compile_once(parameters):
    with jax.default_device(jax.devices("cpu")[0]):  # also where there is a GPU
        bound = [jnp.asarray(parameters[name]) for name in PARAMETERS]

    def apply(*inputs):
        return model(*inputs, *bound)

    {compile}

    def run(size, *arrays):
        with jax.default_device(jax.devices("cpu")[0]):
            return [np.asarray(output) for output in {call}(*[jnp.asarray(x) for x in arrays])]

    return run
"""

_EXPORT = """from jax import export

    scope = export.SymbolicScope()
    specs = [
        jax.ShapeDtypeStruct(export.symbolic_shape(", ".join(map(str, shape)), scope=scope), dtype)
        for dtype, shape in ARGUMENTS.values()
    ]
    compiled = jax.jit(apply)
    exported = export.export(compiled, platforms=["cpu"])(*specs)"""

_EXPORTED = "(exported.call if size else compiled)"  # dimension variables are at least 1, as documented

_FAST = {"xla_cpu_enable_fast_math": True}
_FASTEST = {**_FAST, **{f"xla_cpu_fast_math_honor_{kind}": False for kind in ("nans", "infs", "division", "functions")}}

_CPU = (
    Target(
        "jax-eager",
        "jax",
        _MODULES,
        JAX,
        _LOAD.format(compiled="apply"),
        _PACKAGES,
        Level("jax", 0),
        refuses=REFUSES,
        refusals_file="jax",
        sample_every=4,
        symbolic=swapped(_SYMBOLIC, ("\n    {compile}\n", "")).format(call="apply"),
        gradient=JAX_EAGER,
        question_loads={
            "dynamic_gradient": dynamic_gradient.JAX_EAGER,
            "jvp": jvp.JAX_EAGER,
            "vmap": vmap.JAX_EAGER,
            "hessian": hessian.JAX_EAGER,
            "tangent_gradient": tangent_gradient.JAX_EAGER,
            "tangent_tangent": tangent_tangent.JAX_EAGER,
            "scalars": scalars.JAX_EAGER,
            **control_flow.jax("whole"),
        },
    ),
    Target(
        "jax-jit",
        "jax",
        _MODULES,
        JAX,
        _LOAD.format(compiled="jax.jit(apply)"),
        _PACKAGES,
        Level("jax", 1),
        refuses=REFUSES,
        refusals_file="jax",
        sample_every=2,
        symbolic=_SYMBOLIC.format(compile=_EXPORT, call=_EXPORTED),
        gradient=JAX_JIT,
        switches=passes.XLA,
        question_loads={
            "dynamic_gradient": dynamic_gradient.JAX_JIT,
            "jvp": jvp.JAX_JIT,
            "vmap": vmap.JAX_JIT,
            "hessian": hessian.JAX_JIT,
            "tangent_gradient": tangent_gradient.JAX_JIT,
            "tangent_tangent": tangent_tangent.JAX_JIT,
            "state": state.JAX_DONATED,
            "scalars": scalars.JAX_JIT,
            **control_flow.jax("jax.jit(whole)"),
        },
    ),
    *(
        Target(
            name,
            "jax",
            _MODULES,
            JAX,
            _LOAD.format(compiled=f"jax.jit(apply, compiler_options={options!r})"),
            _PACKAGES,
            Level(name, 0),
            refuses=REFUSES,
            refusals_file="jax",
            sample_every=4,
            arithmetic=rules,
        )
        for name, options, rules in (
            ("xla-fast", _FAST, XLA_FAST),
            ("xla-fastest", _FASTEST, XLA_FASTEST),
        )
    ),
)

_PLUGIN = {"jax-cuda13-plugin|jax-cuda12-plugin": "0.5"}

TARGETS = (
    *_CPU,
    *(
        on_cuda(cpu, name, jax_on_cuda, packages={**cpu.packages, **_PLUGIN}, switches=None)
        for cpu, name in zip(_CPU[:2], ("jax-cuda", "jax-cuda-jit"), strict=True)
    ),
)

"""JAX: the primitives of jax.lax, and those of a jaxpr, with the jaxprs within it."""

import jax
import jax.lax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, Jaxpr, Primitive

BOOKKEEPING = "sharding", "out_sharding", "weak_type", "jaxpr"
DTYPES = [
    *("float32", "float64", "float16", "bfloat16", "bool", "int8", "int16", "int32", "int64"),
    *("uint8", "uint16", "uint32", "uint64", "complex64", "complex128"),
]
jax.config.update("jax_enable_x64", True)


def listed():
    """The parameters of a primitive are seen where it is called alone."""
    return {one.name: [] for one in vars(jax.lax).values() if isinstance(one, Primitive)}


def inner(value):
    if isinstance(value, ClosedJaxpr):
        yield value.jaxpr
    elif isinstance(value, Jaxpr):
        yield value
    elif isinstance(value, tuple | list):
        for one in value:
            yield from inner(one)


def observe(program, note):
    inputs = plain_numbers(program["INPUTS"], 1)
    bound = [jnp.asarray(array) for array in plain_numbers(program["PARAMETERS"], 1).values()]
    closed = jax.make_jaxpr(lambda *arrays: program["model"](*arrays, *bound))(*inputs.values())
    walk(closed.jaxpr, note)


def walk(jaxpr, note):
    for equation in jaxpr.eqns:
        note(equation.primitive.name, list(features(equation)))
        accepted(equation, note)
        for value in equation.params.values():
            for one in inner(value):
                walk(one, note)


def features(equation):
    if equation.invars:
        yield f"type {equation.invars[0].aval.dtype.name}"
    for name, value in params_of(equation):
        if isinstance(value, bool):
            yield f"attribute {name}={value}"
        elif value is None:
            yield f"attribute {name}=absent"
        else:
            yield f"attribute {name}=given"


def params_of(equation):
    """What changes values."""
    return [(name, value) for name, value in equation.params.items() if not name.endswith(BOOKKEEPING)]


def accepted(equation, note):
    """Which dtypes the primitive's own rule takes in place of that of its first operand; other values that a flag may
    have."""
    primitive, params = equation.primitive, equation.params
    if primitive.name in TRIED or not equation.invars:
        return
    TRIED.add(primitive.name)
    first = equation.invars[0].aval.dtype
    avals = [operand.aval for operand in equation.invars]
    for name, value in params_of(equation):
        if isinstance(value, bool):
            for flag in (False, True):
                if flag == value or takes(primitive, avals, {**params, name: flag}):
                    note(primitive.name, [f"accepts attribute {name}={flag}"])
        else:
            note(primitive.name, [f"accepts attribute {name}=given"])
    for dtype in DTYPES:
        others = [aval.update(dtype=jnp.dtype(dtype)) if aval.dtype == first else aval for aval in avals]
        if dtype == first.name or takes(primitive, others, params):
            note(primitive.name, [f"accepts type {dtype}"])


def takes(primitive, avals, params):
    shapes = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in avals]
    try:
        jax.eval_shape(lambda *operands: primitive.bind(*operands, **params), *shapes)
    except Exception:
        return False
    return True

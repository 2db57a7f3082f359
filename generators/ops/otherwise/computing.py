"""Products, windows and elementwise operators said otherwise: of transposed operands, of a sample without its batch, by
index notation, in loops and conditions."""

from __future__ import annotations

from generators.ops.otherwise.record import SAID, otherwise
from generators.ops.otherwise.unsaid import PLAIN
from generators.ops.slots import ints_of
from generators.ops.spec import Call, OpSpec, Spelling, SpellingRule, Unsupported, said


def _ranks(text: str, *ranks: int) -> SpellingRule:
    return lambda call: text if tuple(type_.rank for type_ in call.operands[:2]) == ranks else PLAIN


def _matrices(text: str) -> SpellingRule:
    """The text, where both operands are matrices, or stacks of them."""
    return lambda call: text if min(type_.rank for type_ in call.operands[:2]) > 1 else PLAIN


def _floats(rule: Spelling) -> SpellingRule:
    """Of floating numbers alone."""
    return lambda call: said(rule, call) if call.operands[0].dtype in ("float32", "float64") else PLAIN


def _one_sample(function: str, rest: str) -> SpellingRule:
    """%f: the function, of a sample alone."""
    text = f"unbatched(lambda *x: torch.nn.functional.{function}(*x, {rest}), {{args}})"
    return lambda call: text if call.operands[0].shape[0] == 1 else PLAIN


def _conv_of_one(call: Call) -> str | Unsupported:
    top, left, bottom, right = call.attrs["padding"]  # type: ignore[misc]
    if (top, left) != (bottom, right):
        return PLAIN
    rest = f"stride={{stride}}, padding=({top}, {left}), dilation={{dilation}}, groups={{groups}}"
    return _one_sample("conv2d", rest)(call)


def _of_any_rank(call: Call) -> str | Unsupported:
    """Documented to take strides or a dilation, not both."""
    both = max(ints_of(call.attrs, "stride")) > 1 and max(ints_of(call.attrs, "dilation")) > 1
    return PLAIN if both else "convolved({0}, {1}, {2}, {stride}, {padding}, {dilation}, tf.nn.convolution)"


def _rows(text: str) -> SpellingRule:
    """The text, where operands are alike and have rows."""

    def spell(call: Call) -> str | Unsupported:
        alike = len({type_.shape for type_ in call.operands}) == 1
        return text if alike and call.result.rank and call.result.size else PLAIN

    return spell


def _of_one_batch(text: str) -> SpellingRule:
    """The text, of a batch of one whose queries have heads of keys of their own."""

    def spell(call: Call) -> str | Unsupported:
        queries, keys = (type_.shape for type_ in call.operands[:2])
        return text if queries[0] == 1 and queries[1] == keys[1] else PLAIN

    return spell


def _of_one_head(text: str) -> SpellingRule:
    return lambda call: text if call.operands[0].shape[:2] == (1, 1) else PLAIN


def _image(text: str) -> SpellingRule:
    """A function of images: with something behind the channels, and one image at least."""

    def spell(call: Call) -> str | Unsupported:
        x = call.operands[0]
        return f"torch.nn.functional.{text}" if x.rank > 2 and x.size else PLAIN

    return spell


def _bounded(text: str) -> SpellingRule:
    return lambda call: PLAIN if None in (call.attrs["min"], call.attrs["max"]) else text


def _lower_alone(text: str) -> SpellingRule:
    """The text, of a lower triangle with the diagonal that it has."""
    return lambda call: text if call.attrs["lower"] and not call.attrs["unit"] else PLAIN


def _by_truth(text: str) -> SpellingRule:
    """%s: the truth value that is this number."""

    def spell(call: Call) -> str | Unsupported:
        number = call.attrs["scalar"]
        return text.replace("%s", str(bool(number))) if str(number) in ("0", "0.0", "1", "1.0") else PLAIN

    return spell


_T0, _T1 = "tf.linalg.matrix_transpose({0})", "tf.linalg.matrix_transpose({1})"
_LAST = '"...ij,...jk->...ik", {0}, {1}'
_ROWS, _ROWS_OF_HEAD = "{0}[0], {1}[0], {2}[0]", "{0}[0, 0], {1}[0, 0], {2}[0, 0]"
_ATTENTION, _MASKED = "torch.nn.functional.scaled_dot_product_attention", "is_causal={causal}, scale={scale}"
_POOL = "kernel_size={kernel}, stride={stride}, padding={padding}"

OPERATORS: tuple[OpSpec, ...] = (
    otherwise(
        SAID["matmul"],
        torch=(_floats(_matrices(f"torch.einsum({_LAST})")), _matrices("torch.matmul({1}.mT, {0}.mT).mT"),
               _ranks("torch.bmm({0}, {1})", 3, 3), _ranks("torch.mm({0}, {1})", 2, 2)),
        tensorflow=(_floats(_matrices(f"tf.matmul({_T0}, {{1}}, transpose_a=True)")),
                    _floats(_matrices(f"tf.matmul({{0}}, {_T1}, transpose_b=True)")),
                    _floats(_matrices(f"tf.matmul({_T0}, {_T1}, transpose_a=True, transpose_b=True)")),
                    _floats(_matrices(f"tf.einsum({_LAST})")), _floats("tf.experimental.numpy.matmul({0}, {1})")),
        jax=(_floats(_matrices(f"jnp.einsum({_LAST})")), _matrices("jnp.matmul({1}.mT, {0}.mT).mT"),
             _ranks("jnp.dot({0}, {1})", 2, 2),
             _ranks("jax.lax.dot_general({0}.T, {1}, (((0,), (0,)), ((), ())))", 2, 2)),
    ),
    otherwise(
        SAID["linear"], torch=(_ranks("torch.addmm({2}, {0}, {1}.t())", 2, 2),),
        tensorflow=(_ranks("tf.nn.bias_add(tf.matmul({0}, {1}, transpose_b=True), {2})", 2, 2),
                    _ranks("tf.compat.v1.nn.xw_plus_b({0}, tf.transpose({1}), {2})", 2, 2)),
        jax=("jax.lax.dot_general({0}, {1}, ((({rank0} - 1,), (1,)), ((), ()))) + {2}",),
    ),
    otherwise(
        SAID["outer"], torch=("torch.ger({0}, {1})", "{0}[:, None] * {1}"),
        tensorflow=(_floats("tf.experimental.numpy.outer({0}, {1})"), _floats('tf.einsum("i,j->ij", {0}, {1})')),
        jax=("jnp.multiply.outer({0}, {1})", _floats('jnp.einsum("i,j->ij", {0}, {1})')),
    ),
    otherwise(
        SAID["triangular_solve"],
        torch=("triangular_solved({0}, {1}, {lower}, {unit}, {transposed})",),
        tensorflow=(_lower_alone("triangular_solved({0}, {1}, {transposed})"),),
        jax=("triangular_solved({0}, {1}, {lower}, {unit}, {transposed})",),
    ),
    otherwise(
        SAID["conv2d"], torch=(_conv_of_one,),
        tensorflow=(_of_any_rank,),
        jax=("convolution_last({0}, {1}, {2}, {stride}, {padding}, {dilation}, {groups})",),
    ),
    otherwise(
        SAID["max_pool2d"],
        torch=(_one_sample("max_pool2d", _POOL + ", dilation={dilation}"),
               f"torch.nn.functional.max_pool2d({{0}}, {_POOL}, dilation={{dilation}}, return_indices=True)[0]"),
    ),
    otherwise(
        SAID["avg_pool2d"], torch=(_one_sample("avg_pool2d", _POOL + ", count_include_pad={count_include_pad}"),),
    ),
    otherwise(
        SAID["floor_divide"], torch=('torch.div({0}, {1}, rounding_mode="floor")', "{0} // {1}"),
        tensorflow=("{0} // {1}", _floats("tf.experimental.numpy.floor_divide({0}, {1})")),
        jax=("jnp.divmod({0}, {1})[0]", "{0} // {1}"),
    ),
    otherwise(SAID["maximum"], torch=("torch.max({0}, {1})",)),
    otherwise(SAID["minimum"], torch=("torch.min({0}, {1})",)),
    otherwise(
        SAID["batch_norm"], torch=(_image("instance_norm({0}, {3}, {4}, {1}, {2}, False, 0.1, {epsilon})"),),
    ),
    otherwise(SAID["floor_divide_scalar"], torch=('torch.div({0}, {scalar}, rounding_mode="floor")',)),
    otherwise(
        SAID["attention"],
        torch=(_of_one_batch(f"{_ATTENTION}({_ROWS}, {_MASKED})[None]"),
               _of_one_head(f"{_ATTENTION}({_ROWS_OF_HEAD}, {_MASKED})[None, None]")),
    ),
    # of truth values the greater one is "or", as their sum is, and the product "and"
    otherwise(SAID["logical_and"], torch=("torch.minimum({0}, {1})", "{0} & {1}", "{0} * {1}"),
              tensorflow=("{0} & {1}",), jax=("jnp.minimum({0}, {1})", "{0} & {1}", "{0} * {1}")),
    otherwise(SAID["logical_or"], torch=("torch.maximum({0}, {1})", "{0} | {1}", "{0} + {1}"),
              tensorflow=("{0} | {1}",), jax=("jnp.maximum({0}, {1})", "{0} | {1}", "{0} + {1}")),
    otherwise(SAID["logical_xor"], torch=("{0} != {1}", "{0} ^ {1}"), tensorflow=("{0} ^ {1}",),
              jax=("{0} != {1}", "{0} ^ {1}")),
    otherwise(
        SAID["remainder"], torch=("{0} % {1}",),
        tensorflow=("{0} % {1}", _floats("tf.experimental.numpy.mod({0}, {1})")),
        jax=("jnp.divmod({0}, {1})[1]", "{0} % {1}"),
    ),
    otherwise(
        SAID["clip"], torch=(_bounded("torch.clamp_max(torch.clamp_min({0}, {min}), {max})"),),
        tensorflow=(_bounded("tf.minimum(tf.maximum({0}, {min}), {max})"),),
        jax=(_bounded("jax.lax.clamp(jnp.array({min}, {dtype}), {0}, jnp.array({max}, {dtype}))"),),
    ),
    otherwise(
        SAID["tanh"],
        torch=(_rows("torch.vmap(torch.tanh)({0})"),
               "torch.utils.checkpoint.checkpoint(torch.tanh, {0}, use_reentrant=False)",
               _rows("by_views(torch.tanh_, {0})"), "in_line(torch.tanh_, {0})"),
        tensorflow=(_rows("tf.map_fn(tf.tanh, {0})"), _rows("tf.vectorized_map(tf.tanh, {0})"),
                    "either(tf.tanh, {0})", _rows("by_rows(tf.tanh, {0})"), "tf.recompute_grad(tf.tanh)({0})"),
        jax=(_rows("jax.lax.map(jnp.tanh, {0})"), _rows("jax.vmap(jnp.tanh, -1, -1)({0})"), "either(jnp.tanh, {0})",
             _rows("by_rows(jnp.tanh, {0})"), "jax.checkpoint(jnp.tanh)({0})"),
    ),
    otherwise(SAID["mul_scalar"], torch=(_by_truth("{0} * %s"),), jax=(_by_truth("{0} * %s"),)),
    otherwise(
        SAID["mul"],
        torch=(_rows("torch.vmap(torch.mul, -1, -1)({0}, {1})"), _rows("seen_before({0}, lambda y: y.mul_({1}))")),
        tensorflow=(_rows("tf.map_fn(lambda pair: pair[0] * pair[1], ({0}, {1}), fn_output_signature={dtype})"),
                    _rows("tf.vectorized_map(lambda pair: pair[0] * pair[1], ({0}, {1}))")),
        jax=(_rows("jax.lax.map(lambda pair: pair[0] * pair[1], ({0}, {1}))"),
             _rows("jax.vmap(jnp.multiply, (-1, -1), -1)({0}, {1})")),
    ),
)  # fmt: skip

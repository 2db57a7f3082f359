"""Operators that read and write elements at places, sort and choose, said otherwise."""

from __future__ import annotations

from generators.ops.otherwise.record import SAID, otherwise
from generators.ops.otherwise.unsaid import PLAIN
from generators.ops.slots import axis_in, int_of
from generators.ops.spec import Call, OpSpec, SpellingRule, Unsupported


def _rows(text: str) -> SpellingRule:
    """The text, where whole rows are taken or written: along the first axis, by a list."""

    def spell(call: Call) -> str | Unsupported:
        first = axis_in(call.attrs, call.operands[0].rank) == 0 if "axis" in call.attrs else True
        return text if first and call.operands[1].rank == 1 else PLAIN

    return spell


def _at(text: str) -> SpellingRule:
    """%s: colons before the axis."""
    return lambda call: text.replace("%s", ":, " * axis_in(call.attrs, call.operands[0].rank))


def _listed(rule: SpellingRule) -> SpellingRule:
    """Of indices in a list: others PyTorch takes in no other way."""
    return lambda call: rule(call) if call.operands[1].rank == 1 else PLAIN


def _last_axis(call: Call) -> str | Unsupported:
    """All axes before it are of the batch."""
    x, places = call.operands
    last = x.rank - 1
    same = x.rank > 0 and x.shape[:last] == places.shape[:last]
    return (
        f"tf.gather({{0}}, {{1}}, axis={last}, batch_dims={last})"
        if same and axis_in(call.attrs, x.rank) == last
        else PLAIN
    )


def _ascending(text: str) -> SpellingRule:
    return lambda call: PLAIN if call.attrs["descending"] else text


def _ascending_rows(call: Call) -> str | Unsupported:
    down = call.attrs["descending"] or axis_in(call.attrs, call.result.rank)
    return PLAIN if down else "torch.msort({0})"


def _alike(text: str) -> SpellingRule:
    return lambda call: text if len({type_.shape for type_ in call.operands}) == 1 else PLAIN


def _masked(text: str) -> SpellingRule:
    """The text, where the mask is an index: its dimensions are the first ones of what it chooses from."""

    def spell(call: Call) -> str | Unsupported:
        x, mask = call.operands
        return text if mask.rank and mask.shape == x.shape[: mask.rank] == call.result.shape[: mask.rank] else PLAIN

    return spell


def _each_row(call: Call) -> str | Unsupported:
    """Row by row."""
    rows = "[jax.lax.dynamic_index_in_dim({0}, place, keepdims=False) for place in {1}]"
    return f"jnp.stack({rows})" if call.operands[1].size else PLAIN


def _masked_pick(call: Call) -> str:
    """A place of an axis that is left out by a mask: where the slice begins on that axis is its place, and the masks of
    begin and end there say nothing (strided_slice_op.cc)."""
    axis, place = axis_in(call.attrs, call.operands[0].rank), int_of(call.attrs, "place")
    before, all_of_it = [0] * axis, 2 ** (axis + 1) - 1
    return (
        f"tf.strided_slice({{0}}, {[*before, place]}, {[*before, place + 1]}, begin_mask={all_of_it}, "
        f"end_mask={all_of_it}, shrink_axis_mask={2**axis})"
    )


def _of_lines(text: str) -> SpellingRule:
    """The text, where there is one axis."""
    return lambda call: text if call.operands[0].rank == 1 else PLAIN


def _filled(text: str) -> SpellingRule:
    """The text, where there are elements."""
    return lambda call: text if call.result.size else PLAIN


OPERATORS: tuple[OpSpec, ...] = (
    otherwise(
        SAID["take"], torch=(_listed(_at("{0}[%s{1}]")),),
        tensorflow=(_rows("tf.gather_nd({0}, {1}[:, tf.newaxis])"), _rows("tf.nn.embedding_lookup({0}, {1})"),
                    "tf.experimental.numpy.take({0}, {1}, axis={axis})"),
        jax=('jnp.take({0}, {1}, axis={axis}, mode="clip")', 'jnp.take({0}, {1}, axis={axis}, mode="wrap")',
             _at('{0}.at[%s{1}].get(mode="promise_in_bounds")'), _at("{0}[%s{1}]")),
    ),
    *(
        otherwise(SAID[f"take_{name}"], jax=(*modes, '{0}.at[{1}].get(mode="promise_in_bounds")', _each_row))
        for name, modes in (
            ("bytes", ('jnp.take({0}, {1}, axis=0, mode="clip")', 'jnp.take({0}, {1}, axis=0, mode="wrap")')),
            ("signed_bytes", ("jnp.take({0}, {1}, axis=0)", 'jnp.take({0}, {1}, axis=0, mode="wrap")')),
        )
    ),
    *(
        otherwise(
            SAID[f"write_{name}"],
            jax=(_of_lines("jnp.put({0}, {1}, {2}, inplace=False)"),
                 _of_lines("jnp.put_along_axis({0}, {1}, {2}, 0, inplace=False)")),
        )
        for name in ("bytes", "signed_bytes")
    ),
    otherwise(
        SAID["gather"], torch=("torch.take_along_dim({0}, {1}.long(), dim={axis})",),
        tensorflow=("tf.experimental.numpy.take_along_axis({0}, {1}, {axis})", _last_axis),
        jax=('jnp.take_along_axis({0}, {1}, axis={axis}, mode="clip")',
             'jnp.take_along_axis({0}, {1}, axis={axis}, mode="promise_in_bounds")'),
    ),
    otherwise(  # of longer updates, those at the places that have an index are taken
        SAID["scatter"],
        torch=("torch.scatter({0}, {axis}, {1}.long(), torch.nn.functional.pad({2}, (0, 1) * {2}.dim(), value=1))",),
    ),
    otherwise(SAID["pick"], tensorflow=(_masked_pick,)),
    otherwise(SAID["select_scatter"], torch=("written({0}, lambda y: y.select({axis}, {index}), {1})",)),
    otherwise(SAID["diagonal_scatter"], torch=("written({0}, lambda y: y.diagonal({offset}, -2, -1), {1})",)),
    otherwise(
        SAID["index_add"], torch=(_rows("torch.index_put({0}, ({1},), {2}, accumulate=True)"),),
        tensorflow=(_rows("tf.tensor_scatter_nd_add({0}, {1}[:, tf.newaxis], {2})"),),
        jax=(_rows("jnp.add.at({0}, {1}, {2}, inplace=False)"), _at('{0}.at[%s{1}].add({2}, mode="drop")')),
    ),
    otherwise(
        SAID["segment_sum"],
        torch=("torch.index_put(torch.zeros({shape}, dtype={dtype}, device={0}.device), ({1},), {0}, accumulate=True)",
               "scattered_rows({0}, {1}, {segments})"),
        tensorflow=(_filled("tf.scatter_nd({1}[:, tf.newaxis], {0}, tf.constant({shape}, {1}.dtype))"),
                    "tf.sparse.segment_sum({0}, tf.argsort({1}), tf.sort({1}), num_segments={segments})"),
        jax=('jnp.zeros({shape}, {dtype}).at[{1}].add({0}, mode="drop")',
             "jax.ops.segment_sum({0}, {1}, num_segments={segments}, bucket_size=2)",
             "jax.ops.segment_sum({0}[jnp.argsort({1})], jnp.sort({1}), {segments}, indices_are_sorted=True)"),
    ),
    otherwise(
        SAID["embedding"], torch=(lambda call: "{0}[{1}]" if call.operands[1].rank else PLAIN,),
        tensorflow=("tf.gather({0}, {1})", "tf.gather_nd({0}, {1}[..., tf.newaxis])"),
        jax=('jnp.take({0}, {1}, axis=0, mode="clip")',),
    ),
    otherwise(
        SAID["sort"],
        torch=(_ascending_rows, "torch.sort({0}, dim={axis}, descending={descending}, stable=True).values"),
        tensorflow=(_ascending("tf.experimental.numpy.sort({0}, axis={axis})"),),
        jax=(_ascending("jax.lax.sort({0}, dimension={axis})"),
             "jnp.sort({0}, axis={axis}, stable=False, descending={descending})"),
    ),
    otherwise(
        SAID["masked_infinity"], torch=("torch.where({1}, torch.full_like({0}, float({fill})), {0})",),
    ),
    otherwise(
        SAID["masked_fill"],
        torch=(_masked("torch.index_put({0}, ({1},), torch.tensor({value}, dtype={dtype}, device={0}.device))"),
               "torch.where({1}, torch.full_like({0}, {value}), {0})"),
    ),
    otherwise(
        SAID["where"], tensorflow=(_alike("tf.raw_ops.Select(condition={0}, x={1}, y={2})"),
                                    "tf.experimental.numpy.where({0}, {1}, {2})"),
        jax=(_alike("jax.lax.select({0}, {1}, {2})"), _alike("jnp.select([{0}], [{1}], {2})"),
             _alike("jax.lax.select_n({0}, {2}, {1})")),
    ),
)  # fmt: skip

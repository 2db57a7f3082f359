"""Operators that move elements, said otherwise: cuts, joins, axes, padding, sizes with an open one."""

from __future__ import annotations

from generators.graph import COMMON
from generators.ops.otherwise.record import SAID, otherwise
from generators.ops.otherwise.unsaid import PLAIN
from generators.ops.shape.pad_repeat import pairs
from generators.ops.slots import axis_in, int_of, ints_of, normalized
from generators.ops.spec import Call, OpSpec, SpellingRule, Unsupported

# ---- parts --------------------------------------------------------------------------------------------


def _bounds(text: str, most_step: int = 2**31) -> SpellingRule:
    """<starts> and <stops> counted from the front, within each axis; as far as no step is greater."""

    def spell(call: Call) -> str | Unsupported:
        steps = ints_of(call.attrs, "steps")
        if any(step > most_step for step in steps):
            return PLAIN
        given = zip(ints_of(call.attrs, "starts"), ints_of(call.attrs, "stops"), steps, strict=True)
        ends = [slice(*one).indices(dim) for one, dim in zip(given, call.operands[0].shape, strict=True)]
        starts = [start for start, _, _ in ends]
        return _filled(text, {"starts": starts, "stops": [max(start, stop) for start, stop, _ in ends]})

    return spell


def _part(call: Call) -> tuple[int, int, int, list[int]]:
    """Of a split: the axis, where the part begins and ends, and where all others end."""
    sizes, index = ints_of(call.attrs, "sizes"), int_of(call.attrs, "index")
    ends = [sum(sizes[: number + 1]) for number in range(len(sizes))]
    return axis_in(call.attrs, call.result.rank), ends[index] - sizes[index], ends[index], ends[:-1]


def _from_to(text: str) -> SpellingRule:
    def spell(call: Call) -> str:
        axis, start, stop, ends = _part(call)
        said = {"axis": axis, "start": start, "stop": stop, "size": stop - start, "ends": ends}
        return _filled(text, said)

    return spell


def _filled(text: str, said: dict[str, object]) -> str:
    for name, value in said.items():
        text = text.replace(f"<{name}>", repr(value))
    return text


def _equal_parts(text: str) -> SpellingRule:
    def spell(call: Call) -> str | Unsupported:
        sizes = ints_of(call.attrs, "sizes")
        return _filled(text, {"count": len(sizes)}) if len(set(sizes)) == 1 and sizes[0] else PLAIN

    return spell


def _parts_of_one_size(text: str) -> SpellingRule:
    """<size>: of all parts but the last, which may be smaller; <count>: the most parts that torch.chunk may be asked
    for and gives these, since it gives fewer where such a size leaves none over."""

    def spell(call: Call) -> str | Unsupported:
        *whole, last = ints_of(call.attrs, "sizes")
        if len({*whole, max([last, *whole])}) != 1 or not last:
            return PLAIN
        size, dim = max([last, *whole]), sum([last, *whole])
        count = max(number for number in range(1, dim + 1) if -(-dim // number) == size)
        return _filled(text, {"size": size, "count": count})

    return spell


def _stacked_by_name(call: Call) -> str | Unsupported:
    """vstack, hstack and dstack join along an axis of their own."""
    rank = call.result.rank
    axis = axis_in(call.attrs, rank)
    names = {0: "vstack" if rank > 1 else "hstack", 1: "hstack", 2: "dstack"}
    return f"%s.{names[axis]}([{{args}}])" if axis in names else PLAIN


def _of(module: str, rule: SpellingRule) -> SpellingRule:
    """A text whose %s is the module that has the function."""

    def spell(call: Call) -> str | Unsupported:
        text = rule(call)
        return text if isinstance(text, Unsupported) else text.replace("%s", module)

    return spell


def _first_axis(text: str) -> SpellingRule:
    return lambda call: text if axis_in(call.attrs, call.operands[0].rank) == 0 else PLAIN


# ---- axes ---------------------------------------------------------------------------------------------


def _last_swapped(call: Call) -> str | Unsupported:
    rank = call.result.rank
    perm = list(range(rank))
    perm[-2:] = perm[-2:][::-1]
    return "{0}.mT" if rank > 1 and list(ints_of(call.attrs, "perm")) == perm else PLAIN


def _swapped(text: str) -> SpellingRule:
    """<one>, <other>: the two axes that change their places."""

    def spell(call: Call) -> str | Unsupported:
        moved = [axis for axis, source in enumerate(ints_of(call.attrs, "perm")) if axis != source]
        return _filled(text, {"one": moved[0], "other": moved[1]}) if len(moved) == 2 else PLAIN

    return spell


def _letters(module: str) -> SpellingRule:
    def spell(call: Call) -> str:
        perm = ints_of(call.attrs, "perm")
        names = "abcdefgh"[: len(perm)]
        return f'{module}.einsum("{names}->{"".join(names[axis] for axis in perm)}", {{0}})'

    return spell


def _floats(rule: SpellingRule) -> SpellingRule:
    """Of floating numbers alone, of which every kernel is there."""
    return lambda call: rule(call) if call.operands[0].dtype in ("float32", "float64") else PLAIN


def _named_flip(module: str) -> SpellingRule:
    def spell(call: Call) -> str | Unsupported:
        axes = normalized(call.attrs["axes"], call.result.rank)
        if axes == (0,):
            return f"{module}.flipud({{0}})"
        return f"{module}.fliplr({{0}})" if axes == (1,) else PLAIN

    return spell


def _longer_axes(call: Call) -> str | Unsupported:
    """Beside axes that are longer, which PyTorch leaves."""
    longer = tuple(axis for axis, size in enumerate(call.operands[0].shape) if size != 1)
    return f"torch.squeeze({{0}}, {{axes}} + {longer})" if longer else PLAIN


def _one_axis(text: str) -> SpellingRule:
    return lambda call: text if len(ints_of(call.attrs, "axes")) == 1 else PLAIN


def _no_axis(call: Call) -> str | Unsupported:
    """Where all axes of one place go."""
    x = call.operands[0]
    ones = tuple(axis for axis, size in enumerate(x.shape) if size == 1)
    return "torch.squeeze({0})" if ones and ones == tuple(sorted(normalized(call.attrs["axes"], x.rank))) else PLAIN


def _picked(call: Call) -> str:
    return f"{{0}}[{':, ' * axis_in(call.attrs, call.operands[0].rank)}{{pick}}]"


def _ij(text: str) -> SpellingRule:
    """The text, where the order of axes is the one that counts where none is said."""
    return lambda call: text if call.attrs["indexing"] == "ij" else PLAIN


def _new_axis(name: str) -> SpellingRule:
    return lambda call: f"{{0}}[{':, ' * axis_in(call.attrs, call.result.rank)}{name}]"


# ---- sizes --------------------------------------------------------------------------------------------


def _open_size(text: str) -> SpellingRule:
    """The greatest size is left open."""

    def spell(call: Call) -> str | Unsupported:
        shape = list(call.result.shape)
        if not shape or not call.result.size:
            return PLAIN
        shape[shape.index(max(shape))] = -1
        return text.replace("<shape>", repr(shape))

    return spell


def _kept_sizes(call: Call) -> str:
    """-1 keeps a size."""
    before = (None,) * (call.result.rank - call.operands[0].rank) + call.operands[0].shape
    shape = [-1 if old == new else new for old, new in zip(before, call.result.shape, strict=True)]
    return f"{{0}}.expand({shape})"


def _broadcast_in_dim(call: Call) -> str:
    dims = tuple(range(call.result.rank - call.operands[0].rank, call.result.rank))
    return f"jax.lax.broadcast_in_dim({{0}}, {{shape}}, {dims})"


def _filled_with(call: Call) -> str | Unsupported:
    return "tf.fill({shape}, {0})" if call.operands[0].rank == 0 else PLAIN


def _padded(text: str, backwards: bool = False) -> SpellingRule:
    """%s: (before, after) of each axis, the last one first where `backwards`."""

    def spell(call: Call) -> str:
        widths = pairs(call.attrs)
        told = [width for pair in reversed(widths) for width in pair] if backwards else widths
        return text.replace("%s", repr(told)).replace("%w", repr([(*pair, 0) for pair in widths]))

    return spell


def _common(rule: SpellingRule) -> SpellingRule:
    """Of usual dtypes alone: what is refused of others is measured of the whole operator."""
    return lambda call: rule(call) if call.result.dtype in COMMON else PLAIN


def _repeats(text: str) -> SpellingRule:
    """%s: how often each element along the axis."""

    def spell(call: Call) -> str:
        dim = call.operands[0].shape[axis_in(call.attrs, call.result.rank)]
        times = int_of(call.attrs, "repeats")
        return text.replace("%s", repr([times] * dim)).replace("%n", repr(dim * times))

    return spell


def _in_steps_of_one(call: Call) -> str | Unsupported:
    first, count = int_of(call.attrs, "start"), call.result.shape[0]
    text = f"torch.arange({first}, {first + count}, dtype={{dtype}}, device={{0}}.device)"
    return text if call.attrs["step"] == 1 else PLAIN


def _from_beyond(call: Call) -> str | Unsupported:
    """A place before the front is the front."""
    x, part = call.operands
    axis = axis_in(call.attrs, x.rank)
    start, step = int_of(call.attrs, "start"), int_of(call.attrs, "step")
    if start or not part.shape[axis]:
        return PLAIN
    stop = (part.shape[axis] - 1) * step + 1
    return f"torch.slice_scatter({{0}}, {{1}}, {{axis}}, {-x.shape[axis] - 3}, {stop}, {{step}})"


def _eye(call: Call) -> str | Unsupported:
    """Of the dtype that is taken where none is said."""
    return (
        "torch.eye(*{shape}, device={0}.device)" if call.result.dtype == "float32" and call.attrs["k"] == 0 else PLAIN
    )


def _image_turned(call: Call) -> str | Unsupported:
    """tf.image turns images, or several, whose channels come last and that have elements; it chooses among branches by
    k."""
    turned = "tf.squeeze(tf.image.rot90(tf.expand_dims({0}, -1), {k}), [-1])"
    return turned if call.result.rank <= 3 and call.result.size else PLAIN


OPERATORS: tuple[OpSpec, ...] = (
    otherwise(SAID["eye_like"], torch=(_eye,)),
    otherwise(
        SAID["rot90"], torch=("torch.rot90({0}, -({k}), (-1, -2))",), tensorflow=(_image_turned,),
        jax=("jnp.rot90({0}, -({k}), (-1, -2))",),
    ),
    otherwise(
        SAID["slice"], torch=(_bounds("narrowed({0}, <starts>, {shape})", 1),),
        tensorflow=(_bounds("tf.slice({0}, <starts>, {shape})", 1),),
        jax=(_bounds("jax.lax.slice({0}, <starts>, <stops>, {steps})"),
             _bounds("jax.lax.dynamic_slice({0}, <starts>, {shape})", 1)),
    ),
    otherwise(
        SAID["split"],
        torch=(_from_to("torch.tensor_split({0}, <ends>, dim=<axis>)[{index}]"),
               _from_to("torch.narrow({0}, <axis>, <start>, <size>)"),
               _parts_of_one_size("torch.chunk({0}, <count>, dim={axis})[{index}]"),
               _parts_of_one_size("torch.split({0}, <size>, dim={axis})[{index}]")),
        tensorflow=(_from_to("tf.experimental.numpy.split({0}, <ends>, axis=<axis>)[{index}]"),
                    _equal_parts("tf.split({0}, <count>, axis={axis})[{index}]")),
        jax=(_from_to("jax.lax.split({0}, {sizes}, axis=<axis>)[{index}]"),
             _from_to("jax.lax.slice_in_dim({0}, <start>, <stop>, axis={axis})"),
             _from_to("jax.lax.dynamic_slice_in_dim({0}, <start>, <size>, axis={axis})")),
    ),
    otherwise(
        SAID["concat"],
        # an empty tensor of one dimension goes with all others
        torch=(_of("torch", _stacked_by_name), "torch.concat([{0}.new_zeros(0), {args}], dim={axis})",
               "torch.concat([{args}, {0}.new_zeros(0)], dim={axis})"),
        tensorflow=("tf.experimental.numpy.concatenate([{args}], axis={axis})",),
        jax=(_of("jnp", _stacked_by_name),
             lambda call: f"jax.lax.concatenate([{{args}}], {axis_in(call.attrs, call.result.rank)})"),
    ),
    otherwise(
        SAID["unstack"], torch=("torch.select({0}, {axis}, {pick})", _picked),
        tensorflow=("tf.gather({0}, {pick}, axis={axis})", _first_axis("kept_in_list({0}, {pick})")),
        jax=("jax.lax.index_in_dim({0}, {pick}, {axis}, keepdims=False)",
             "jax.lax.dynamic_index_in_dim({0}, {pick}, {axis}, keepdims=False)"),
    ),
    otherwise(
        SAID["flip"], torch=(_named_flip("torch"),),
        tensorflow=(_one_axis("tf.experimental.numpy.flip({0}, {axes}[0])"),),
        jax=(lambda call: f"jax.lax.rev({{0}}, {normalized(call.attrs['axes'], call.result.rank)})",
             _named_flip("jnp")),
    ),
    otherwise(
        SAID["roll"], torch=("torch.roll({0}, ({shift},), ({axis},))",),
        tensorflow=("tf.experimental.numpy.roll({0}, {shift}, {axis})",),
        jax=("jnp.roll({0}, jnp.array({shift}), axis={axis})", "jnp.roll({0}, ({shift},), axis=({axis},))"),
    ),
    otherwise(
        SAID["transpose"],
        torch=(_last_swapped, _floats(_letters("torch")), "torch.movedim({0}, {perm}, tuple(range({rank})))",
               _swapped("turned_in_place({0}, lambda y: y.transpose_(<one>, <other>))")),
        tensorflow=("tf.experimental.numpy.transpose({0}, {perm})", _floats(_letters("tf"))),
        jax=("jax.lax.transpose({0}, {perm})", _floats(_letters("jnp"))),
    ),
    otherwise(
        SAID["unsqueeze"], torch=(_new_axis("None"), "turned_in_place({0}, lambda y: y.unsqueeze_({axis}))"),
        tensorflow=(_new_axis("tf.newaxis"),),
        jax=(_new_axis("None"), "jax.lax.expand_dims({0}, ({axis},))"),
    ),
    otherwise(
        SAID["squeeze"],
        torch=(_one_axis("torch.squeeze({0}, {axes}[0])"), _longer_axes, _no_axis,
               _one_axis("turned_in_place({0}, lambda y: y.squeeze_({axes}[0]))")),
        tensorflow=("tf.experimental.numpy.squeeze({0}, {axes})",), jax=("jax.lax.squeeze({0}, {axes})",),
    ),
    otherwise(
        SAID["reshape"],
        torch=(_open_size("torch.reshape({0}, <shape>)"),
               "{0}.reshape_as(torch.ones({shape}, device={0}.device))"),
        tensorflow=(_open_size("tf.reshape({0}, <shape>)"),),
        jax=(_open_size("jnp.reshape({0}, <shape>)"), "jax.lax.reshape({0}, {shape})"),
    ),
    otherwise(
        SAID["broadcast_to"], torch=(_kept_sizes, "{0}.expand_as(torch.zeros({shape}, device={0}.device))"),
        tensorflow=(_filled_with, "tf.experimental.numpy.broadcast_to({0}, {shape})"), jax=(_broadcast_in_dim,),
    ),
    otherwise(SAID["counting"], torch=(_in_steps_of_one,)),
    otherwise(SAID["meshgrid"], torch=(_ij("torch.meshgrid({0}, {1})[{pick}].contiguous()"),)),
    otherwise(SAID["slice_update"], torch=(_from_beyond,)),
    *(
        otherwise(SAID[f"{name}_like_to"], torch=(f"{{0}}.new_{name}({{shape}}, dtype={{dtype}})",))
        for name in ("zeros", "ones")
    ),
    otherwise(
        SAID["pad"], torch=(_padded("torch.constant_pad_nd({0}, %s, {value})", backwards=True),),
        tensorflow=(_padded('tf.experimental.numpy.pad({0}, %s, "constant", constant_values={value})'),),
        jax=(_padded("jax.lax.pad({0}, jnp.array({value}, {dtype}), %w)"),),
    ),
    otherwise(
        SAID["repeat"],
        torch=(_repeats("repeated({0}, %s, {axis})"),),
        tensorflow=(_common(_repeats("tf.repeat({0}, %s, axis={axis})")),
                    "tf.experimental.numpy.repeat({0}, {repeats}, axis={axis})"),
        jax=(_repeats("jnp.repeat({0}, jnp.array(%s, jnp.int32), axis={axis}, total_repeat_length=%n)"),),
    ),
)  # fmt: skip

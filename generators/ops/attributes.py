"""The type of every attribute. Attributes of one name are of one type, but for the operators that `_OWN` names."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite

from generators.graph import Attr, GraphError, Node

OTHERWISE = "_otherwise"
"""How names end of operators that are said in other functions (`generators/ops/otherwise/`)."""
LARGEST = 2**31
"""The greatest whole number of a list: sizes, steps and places, which numpy takes as C's own integers."""
_BOOL, _INT, _FLOAT, _TEXT, _NONE = "true or false", "a whole number", "a number with a point", "a text", "nothing"
_INTS, _FLOATS = "a list of whole numbers", "a list of numbers with a point"

_TYPES: Mapping[str, str] = {
    name: told
    for told, names in {
        _BOOL: "accumulate adjoint align_corners causal count_include_pad descending exclusive fast include_self"
        " increasing interleaved inverse invert keepdims largest log_input lower narrow onesided periodic pivots"
        " beside reverse right scaled training transposed unit upper whole",
        _INT: "axis batch bins bits block columns correction decimals depth divisor edge exponent factor groups ignore"
        " index k last limit mantissa n offset order pick place repeats samples segments shift size spelling start step"
        " zero_point",
        _FLOAT: "alpha atol beta bias delta dx eps epsilon gamma lambd margin max min momentum nan neginf p posinf q"
        " rate rtol scale smoothing stop threshold value",
        _TEXT: "activation comparison direction dtype equation fill form indexing kind method mode norm ord output"
        " reduction reset to",
        _INTS: "axes band boundaries dilation geometry image kernel offsets output_padding padding pads perm shape"
        " shifts sizes starts steps stops stride",
        _FLOATS: "scales",
    }.items()
    for name in names.split()
}
_SEVERAL: Mapping[str, tuple[str, ...]] = {"scalar": (_FLOAT, _INT)}
_OWN: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("adaptive_avg_pool1d", "output"): (_INTS,),
    ("adaptive_avg_pool2d", "output"): (_INTS,),
    ("adaptive_avg_pool3d", "output"): (_INTS,),
    ("adaptive_max_pool1d", "output"): (_INTS,),
    ("adaptive_max_pool1d_places", "output"): (_INTS,),
    ("adaptive_max_pool2d", "output"): (_INTS,),
    ("adaptive_max_pool2d_places", "output"): (_INTS,),
    ("adaptive_max_pool3d", "output"): (_INTS,),
    ("adaptive_max_pool3d_places", "output"): (_INTS,),
    ("adjust_contrast", "factor"): (_FLOAT,),
    ("adjust_saturation", "factor"): (_FLOAT,),
    ("affine_grid", "size"): (_INTS,),
    ("attention", "scale"): (_FLOAT, _NONE),
    ("attention_biased", "scale"): (_FLOAT, _NONE),
    ("attention_masked", "scale"): (_FLOAT, _NONE),
    ("batch_to_space", "block"): (_INTS,),
    ("clip", "max"): (_FLOAT, _INT),
    ("clip", "min"): (_FLOAT, _INT),
    ("clip_crossed", "max"): (_FLOAT, _INT),
    ("clip_crossed", "min"): (_FLOAT, _INT),
    ("clip_one_side", "max"): (_FLOAT, _INT, _NONE),
    ("clip_one_side_floating", "max"): (_FLOAT, _NONE),
    ("clip_one_side_floating", "min"): (_FLOAT, _NONE),
    ("clip_one_side", "min"): (_FLOAT, _INT, _NONE),
    ("cosine_transform", "kind"): (_INT,),
    ("crop_and_resize", "size"): (_INTS,),
    ("dilation2d", "padding"): (_TEXT,),
    ("dynamic_stitch", "order"): (_INTS,),
    ("embedding_bag", "padding"): (_INT, _NONE),
    ("embedding_bag_offsets", "padding"): (_INT, _NONE),
    ("embedding_bag_weighted", "padding"): (_INT, _NONE),
    ("embedding_padded", "padding"): (_INT,),
    ("global_lp_pool", "p"): (_INT,),
    ("grid_sample", "padding"): (_TEXT,),
    ("image_patches", "padding"): (_TEXT,),
    ("local_response_norm", "k"): (_FLOAT,),
    ("logit", "eps"): (_FLOAT, _NONE),
    ("index_fill", "value"): (_FLOAT, _INT),
    ("linspace", "start"): (_FLOAT,),
    ("lp_normalize", "p"): (_INT,),
    ("slice_update_front", "start"): (_NONE,),
    ("masked_fill", "value"): (_FLOAT, _INT, _BOOL),
    ("matrix_diag", "value"): (_FLOAT, _INT, _BOOL),
    ("matrix_diag_part", "value"): (_FLOAT, _INT, _BOOL),
    ("max_pool_with_argmax", "padding"): (_TEXT,),
    ("multi_margin", "p"): (_INT,),
    ("mvlgamma", "p"): (_INT,),
    ("pad", "value"): (_FLOAT, _INT, _BOOL),
    ("resize_antialias", "size"): (_INTS,),
    ("resize_nearest_of_integers", "size"): (_INTS,),
    ("roi_align", "size"): (_INTS,),
    ("roi_align_max", "size"): (_INTS,),
    ("resize_linear_line", "size"): (_INTS,),
    ("resize_linear_volume", "size"): (_INTS,),
    ("resize_nearest_line", "size"): (_INTS,),
    ("resize_nearest_volume", "size"): (_INTS,),
    ("resize_cubic", "size"): (_INTS,),
    ("resize_linear", "size"): (_INTS,),
    ("resize_nearest", "size"): (_INTS,),
    ("max_along", "pick"): (_TEXT,),
    ("max_along_of_scalar", "pick"): (_TEXT,),
    ("min_along_of_scalar", "pick"): (_TEXT,),
    ("min_along", "pick"): (_TEXT,),
    ("scatter_value", "value"): (_FLOAT, _INT),
    ("slogdet", "pick"): (_TEXT,),
    ("space_to_batch", "block"): (_INTS,),
    ("tensordot", "axes"): (_INT,),
    ("tile", "repeats"): (_INTS,),
    ("volume_patches", "padding"): (_TEXT,),
}
"""Where an attribute is of another type than its name says elsewhere, or of one of several."""


SPECIAL, FILLING = "scalar", ("pad", "masked_fill", "index_fill", "scatter_value", "nan_to_num")
"""Attributes that may be infinite or NaN: a number that stands where a tensor may, and what these operators put in
place of elements."""


def types_of(operator: str, attribute: str) -> tuple[str, ...]:
    """What an attribute of an operator may be, in words. Raises LookupError for one that has no type here."""
    return _OWN.get((operator.removesuffix(OTHERWISE), attribute)) or _SEVERAL.get(attribute) or (_TYPES[attribute],)


def kinds_of(value: Attr) -> tuple[str, ...]:
    """What a value is, in the same words; an empty list is of both kinds."""
    if isinstance(value, tuple):
        kinds = {type(item) for item in value}
        return tuple(told for told, kind in ((_INTS, int), (_FLOATS, float)) if kinds <= {kind})
    return tuple(told for kind, told in _KINDS if type(value) is kind)


_KINDS = ((bool, _BOOL), (int, _INT), (float, _FLOAT), (str, _TEXT), (type(None), _NONE))


def check_attributes(node: Node, names: Mapping[str, object]) -> None:
    """Are the attributes of a node those that its operator has, each of its type? Raises GraphError naming node and
    attribute."""
    where = f"node {node.name}: {node.op}"
    given = [name for name, _ in node.attrs]
    for name in given:
        if name not in names:
            raise GraphError(f"{where} has no attribute {name!r}; it has {', '.join(names) or 'none'}")
    for name in names:
        if given.count(name) != 1:
            raise GraphError(f"{where}: attribute {name!r} is {'missing' if name not in given else 'there twice'}")
    for name, value in node.attrs:
        wanted = types_of(node.op, name)
        if set(wanted).isdisjoint(kinds_of(value)):
            raise GraphError(f"{where}: attribute {name!r} must be {' or '.join(wanted)}, not {value!r}")
        special = name == SPECIAL or node.op.removesuffix(OTHERWISE) in FILLING
        if isinstance(value, float) and not isfinite(value) and not special:
            raise GraphError(f"{where}: attribute {name!r} is not finite")
        if isinstance(value, tuple) and any(isinstance(item, int) and abs(item) > LARGEST for item in value):
            raise GraphError(f"{where}: attribute {name!r} has a number beyond {LARGEST}")

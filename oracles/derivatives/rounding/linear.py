"""Operators that are linear in an operand: their slopes by it are 1, -1 or 0, constants, or elements of the others."""

from __future__ import annotations

from generators.ops.spec import Call


def words(text: str) -> tuple[str, ...]:
    """Names of operators."""
    return tuple(text.split())


MOVING = frozenset(
    words(
        """abs adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d add add_n add_scalar approx_top_k
    approximate_topk batch_to_space block_diag broadcast_to cast channel_shuffle clip clip_max clip_min
    clip_tensors concat copysign copysign_scalar cummax cummin cumsum cumulative_sum depth_to_space diag_embed
    diagonal diagonal_scatter diff dilation2d dynamic_stitch dynamic_update_slice einsum_single embedding
    embedding_padded flatten flatten_2d flip fmax fmin fold frac gather gather_nd global_max_pool hardshrink
    hardtanh heaviside identity dropout_off image_patches index_add index_fill index_put kth_value l1_norm linf_norm
    masked_fill masked_scatter matrix_diag matrix_diag_part matrix_set_diag max max_along max_pool1d
    max_pool1d_ceil max_pool1d_same max_pool2d max_pool2d_ceil max_pool2d_same max_pool3d max_pool3d_ceil
    max_pool_with_argmax max_unpool1d max_unpool2d max_unpool3d max_whole maximum median_along median_whole
    meshgrid min min_along min_pool2d min_whole minimum moveaxis nan_to_num nanmedian nanmedian_whole nansum neg
    nth_element pad pad_crop pad_edge pad_reflect pad_wrap pixel_shuffle pixel_unshuffle positive ptp put
    reduced_by_function relu relu6 repeat reshape resize_nearest resize_nearest_line resize_nearest_scaled
    resize_nearest_volume reverse_sequence roll roll_axes rot90 running_sum scalar_sub scalar_where scatter
    scatter_add scatter_nd scatter_rows scatter_sub scatter_value segment_max segment_min segment_sum
    select_scatter slice slice_backwards slice_update sliding_windows softshrink sort sorted_segment_max
    sorted_segment_min sorted_segment_sum space_to_batch space_to_depth split squeeze stack sub sub_scalar sum
    swapaxes take take_flat tensor_diag tensor_diag_part threshold thresholded_relu tile topk trace transpose
    tril triu unflatten unfold unsqueeze unstack upsample_nearest volume_patches weighted_bincount where
    where_scalar write take_from_end take_flat_from_end gather_from_end gather_nd_from_end scatter_from_end
    scatter_nd_from_end pick take_crossed
    clip_one_side slice_update_front clip_crossed l0_norm masked_infinity kept_cumsum kept_roll kept_flip
    nanmax nanmin nancumsum segment_sum_dropping segment_max_dropping segment_min_dropping
    sum_nowhere mean_nowhere max_nowhere min_nowhere prod_nowhere dynamic_slice"""
    )
)
"""Each slope is 1, -1 or 0: what reaches an element is a sum of adjoints."""

SCALED = frozenset(
    words(
        """adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d avg_pool1d avg_pool1d_ceil avg_pool1d_same
    avg_pool2d avg_pool2d_ceil avg_pool2d_divided avg_pool2d_same avg_pool3d avg_pool3d_ceil avg_pool3d_divided deg2rad
    div_scalar embedding_bag embedding_bag_offsets frexp_mantissa global_avg_pool hard_sigmoid hard_sigmoid_linear
    leaky_relu mean mean_abs mean_n mul_scalar nanmean rad2deg resize_area sorted_segment_mean trapezoid add_multiple
    sub_multiple rsub_multiple sampled_gradient cumulative_trapezoid
    segment_mean_dropping segment_sqrt_n_dropping"""
    )
)
"""Each slope is a constant: what is divided by a number, 2.5 ulp in OpenCL, or multiplied by one that is rounded. The
mean of a window that is partly padded is a quotient of two means in TensorFlow, 4 roundings; three divisions of a cell
of adaptive pooling are correctly rounded in PyTorch."""
SCALING = 5

_BY_ANOTHER = words(
    """batch_matmul cross dot einsum kron linear matmul mul outer tensordot tridiagonal_matmul vecdot
    matrix_vector vector_matrix
    convolution conv1d conv1d_same conv2d conv2d_same conv3d conv_transpose1d conv_transpose2d conv_transpose3d
    depthwise_conv2d multiply_no_nan prelu prelu_broadcast"""
)
_ADDED = words("addr addmv addmm baddbmm addbmm")

ROUNDINGS: dict[str, dict[int, float | None]] = {
    **{name: {0: 1, 1: 1} for name in _BY_ANOTHER},
    "rotary_embedding": {0: 1, 1: 1, 2: 1},
    "embedding_bag_weighted": {0: None, 2: 1},  # a row that is there twice has the sum of two weights
    # twice the operand, or its half twice
    **{name: {0: 1} for name in words("l2_loss relu_squared sum_of_squares")},
    # alpha is rounded; it and the other factor are multiplied with the adjoint. beta and one product
    **{name: {0: 3, 1: 3, 2: 2} for name in _ADDED},
    "addcmul": {1: 3, 2: 3},
    # value is rounded; a quotient, 2.5 ulp, and a product: value / c. By c, see its formulas
    "addcdiv": {1: 7, 2: None},
}
"""By position, how many roundings the product with the adjoint has whose slope is an element of other operands, times
constants; direct algorithms, as for the values. Each slope by another operand, a bias, is 1."""

LINEAR = frozenset((*_BY_ANOTHER, *_ADDED, "addcmul", "embedding_bag_weighted", "rotary_embedding"))
LINEAR -= {"prelu", "prelu_broadcast"}
"""Those that are linear in each operand by itself."""

ADDED_TO = frozenset(words("addcmul addcdiv"))
"""Operand 0 is added to what is made of the others, whose slopes are the same beside any of it."""

PRODUCTS = frozenset(words("prod cumprod running_product segment_prod sorted_segment_prod segment_prod_dropping"))
"""The slope is a product of the other factors."""
_QUOTIENT = 7
"""The product times the adjoint by the factor: two roundings and a quotient of 2.5 ulp, where n - 1 products are not
all; from both ends, or of a tree, there are n."""

_REDUCING = ("index_reduce", "scatter_reduce")


def roundings(op: str, position: int, call: Call, count: int) -> float | None:
    """How many roundings the product of slope and adjoint has; 0: the slope is 1, -1 or 0, and the product exact;
    None: it is not known. count: factors of a product."""
    if op in MOVING:
        return 0
    if op in _REDUCING:
        extreme = None if position == 0 else 0  # JAX takes the shares of what is written from the adjoint
        return {"sum": 0, "mean": SCALING, "prod": count + _QUOTIENT}.get(str(call.attrs["reduction"]), extreme)
    if op in SCALED:
        return SCALING
    if op in PRODUCTS:
        return count + _QUOTIENT
    if op in ROUNDINGS:
        return ROUNDINGS[op].get(position, 0)
    return None

"""How often an operator is drawn, and in which order. What a seed draws depends on the order, and what fails shrinks
towards the first: new names come last.

An operator that stands in none of the lists needs no entry: it is drawn like the stepped ones, after all of them."""

from __future__ import annotations


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


OFTEN = _names(
    """
    neg abs sign square reciprocal sqrt rsqrt exp expm1 log log1p log2 sin cos tan asin acos atan sinh cosh tanh
    asinh acosh atanh erf floor ceil round trunc isnan isinf isfinite logical_not cast
    relu relu6 leaky_relu prelu elu selu sigmoid hard_sigmoid hard_swish silu gelu gelu_tanh softplus softsign
    mish log_sigmoid
    add sub mul div pow atan2 squared_difference logical_and logical_or logical_xor
    equal not_equal less less_equal greater greater_equal maximum minimum where clip
    sum mean max min prod argmax argmin variance std logsumexp all any l2_norm
    cumsum cumprod tril triu
    matmul linear
    conv1d conv2d conv_transpose2d
    max_pool1d max_pool2d avg_pool2d global_avg_pool
    softmax log_softmax layer_norm rms_norm batch_norm instance_norm group_norm
    identity reshape flatten flatten_2d transpose squeeze unsqueeze broadcast_to
    concat stack split slice flip roll
    pad pad_reflect pad_edge pad_wrap tile repeat diagonal pixel_shuffle depth_to_space pixel_unshuffle
    space_to_depth
    take embedding gather gather_nd one_hot
    slice_update scatter_add scatter_max scatter_min index_add segment_sum
    """
)
"""What hunts and campaigns draw most: the few that models are made of."""

SELDOM = _names(
    """
    bitwise_and bitwise_or bitwise_xor bitwise_not left_shift right_shift
    floor_divide remainder fmod trunc_divide
    exp2 log10 erfc sinc deg2rad rad2deg frac signbit nan_to_num logit isposinf isneginf
    softshrink hardshrink tanhshrink threshold hardtanh celu glu relu_squared
    hypot logaddexp copysign xlogy heaviside fmax fmin lerp addcmul isclose masked_fill
    l1_norm linf_norm sum_of_squares mean_abs ptp count_nonzero
    cummax cummin logcumsumexp
    mse_loss l1_loss smooth_l1_loss huber_loss bce_with_logits kl_div hinge_loss nll_loss cross_entropy
    outer kron dot vecdot cross addmm baddbmm trace
    einsum_single einsum
    sort argsort topk topk_indices kth_value bucketize
    swapaxes moveaxis rot90 unflatten roll_axes slice_backwards diag_embed block_diag channel_shuffle
    adaptive_avg_pool2d adaptive_max_pool2d upsample_nearest
    conv3d conv_transpose1d conv_transpose3d
    max_pool3d avg_pool1d avg_pool3d
    """
)
"""Some of them are drawn for each graph: the many would else crowd out the few."""

STEPPED = _names(
    """
    frexp_mantissa frexp_exponent ldexp gcd lcm cbrt logaddexp2 positive prelu_broadcast
    meshgrid isin unique_inverse unstack cumulative_sum resize_area
    rfft irfft fft fft2
    resize_nearest resize_linear resize_cubic resize_antialias
    scatter scatter_nd
    erfinv lgamma digamma bessel_i0 nextafter
    embedding_bag embedding_bag_offsets embedding_bag_weighted embedding_padded
    unfold fold lp_pool1d lp_pool2d max_unpool2d depthwise_conv2d pad_crop
    vector_norm matrix_norm spectral_norm matrix_rank nansum nanmean
    solve inverse triangular_solve cholesky det slogdet matrix_power
    singular_values eigenvalues qr_factor pseudo_inverse
    grid_sample affine_grid
    quantile diff trapezoid cov cdist bincount searchsorted
    attention attention_masked attention_biased
    rnn_cell rnn gru_cell gru lstm_cell lstm
    margin_ranking hinge_embedding soft_margin cosine_embedding pairwise_distance triplet_margin multi_margin
    binary_cross_entropy bce_pos_weight kl_div_log_target poisson_nll gaussian_nll nll_loss_weighted
    cross_entropy_weighted
    batch_norm_training layer_norm_plain instance_norm_plain local_response_norm
    complex polar real_part imaginary_part modulus phase conj complex_neg complex_square complex_reciprocal
    complex_exp complex_log complex_sqrt complex_sign complex_add complex_sub complex_mul complex_div
    complex_equal to_complex complex_cast
    view_as_real view_as_complex complex_sum complex_mean complex_matmul complex_inner adjoint complex_fft
    complex_rfft complex_irfft
    vander tensordot corrcoef nanmedian histogram index_put
    """
)
"""Drawn seldom, too. What they lose between their steps is derived for ordinary roundings only: arithmetic that
reassociates is not asked of graphs with them."""

ON_REQUEST = _names(
    """
    quantize_dequantize quantize_dequantize_channels write
    bessel_j bessel_y bessel_i modified_bessel_i bessel_k spherical_bessel_j0 airy_ai igamma igammac betainc
    polygamma zeta mvlgamma gamma_function log_beta beta_function rising_factorial relative_entropy
    kullback_leibler ndtr log_ndtr ndtri erfcx entr xlog1py xdivy multiply_no_nan dawsn expint fresnel
    spence chebyshev orthogonal_polynomial population_count count_leading_zeros multiply_high reduce_precision
    add_scalar sub_scalar mul_scalar div_scalar pow_scalar scalar_sub scalar_div scalar_pow floor_divide_scalar
    remainder_scalar fmod_scalar scalar_remainder bitwise_and_scalar scalar_bitwise_and bitwise_or_scalar
    scalar_bitwise_or bitwise_xor_scalar scalar_bitwise_xor left_shift_scalar right_shift_scalar
    scalar_left_shift scalar_right_shift equal_scalar not_equal_scalar less_scalar less_equal_scalar
    greater_scalar greater_equal_scalar copysign_scalar xlogy_scalar scalar_xlogy xlog1py_scalar scalar_xlog1py
    zeta_scalar scalar_zeta chebyshev_scalar orthogonal_polynomial_scalar lerp_scalar where_scalar scalar_where
    clip_tensors clip_min clip_max addcdiv round_decimals float_power angle approximate_equal rint inv
    adaptive_avg_pool1d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool1d_places
    adaptive_max_pool2d_places adaptive_max_pool3d adaptive_max_pool3d_places add_n addbmm addmv addr
    adjust_contrast adjust_saturation approx_top_k approximate_topk banded_triangular_solve batch_matmul
    batch_to_space bilinear_form bitcast bitwise_xor_reduced cholesky_inverse cholesky_solve complex_fft2
    complex_fft3 complex_irfft2 complex_irfft3 complex_rfft2 complex_rfft3 condition_number crop_and_resize
    diagonal_scatter dilation2d dynamic_stitch dynamic_update_slice eigh_product euclidean_norm fake_quant
    fused_batch_norm global_lp_pool global_max_pool histogram_fixed_width householder_product hsv_to_rgb
    image_patches in_top_k index_fill index_reduce kth_index l2_loss ldl_solve least_squares
    least_squares_regularized line_between log_sum lp_normalize lu_product lu_solve lu_unpacked_product
    masked_scatter matmul_widened matrix_diag matrix_diag_part matrix_exp matrix_set_diag matrix_square_root
    max_along max_pool1d_places max_pool2d_places max_pool3d_places max_pool_with_argmax max_unpool1d
    max_unpool3d max_whole median_along median_whole min_along min_pool2d min_whole mode multi_dot multilabel_margin
    nanmedian_whole non_max_suppression nth_element ones_like ormqr_product places_in_order put qr_product
    reduced_by_function resize_linear_line resize_linear_volume resize_nearest_line resize_nearest_volume
    reverse_sequence rgb_to_hsv rotary_embedding running_statistics scatter_reduce scatter_rows scatter_sub
    scatter_value segment_max segment_min segment_prod select_scatter sliding_windows softmax_cross_entropy
    sorted_segment_max sorted_segment_mean sorted_segment_min sorted_segment_prod sorted_segment_sum space_to_batch
    svd_product take_flat tensor_diag tensor_diag_part tensor_size tridiagonal_matmul tridiagonal_solve unique_places
    unravel_index volume_patches weighted_bincount zeros_like
    thresholded_relu scaled_elu hard_sigmoid_linear swish running_sum running_product hardmax eye_like tapered
    acos_of_integers acosh_of_integers add_mixed add_scalar_floating add_scalar_integer asin_of_integers
    asinh_of_integers atan2_mixed atan_of_integers avg_pool1d_ceil avg_pool1d_same avg_pool2d_ceil
    avg_pool2d_divided avg_pool2d_same avg_pool3d_ceil avg_pool3d_divided bitwise_and_mixed bitwise_or_mixed
    bitwise_xor_mixed conv1d_same conv2d_same cos_of_integers cosh_of_integers cumprod_to cumsum_to div_mixed
    div_scalar_floating equal_mixed equal_scalar_floating equal_scalar_integer erf_of_integers exp_of_integers
    expm1_of_integers floor_divide_scalar_floating fmod_mixed fmod_scalar_floating greater_equal_mixed
    greater_equal_scalar_floating greater_equal_scalar_integer greater_mixed greater_scalar_floating
    greater_scalar_integer less_equal_mixed less_equal_scalar_floating less_equal_scalar_integer less_mixed
    less_scalar_floating less_scalar_integer log1p_of_integers log2_of_integers log_of_integers log_softmax_to
    max_pool1d_ceil max_pool1d_same max_pool2d_ceil max_pool2d_same max_pool3d_ceil maximum_mixed mean_to
    minimum_mixed mul_mixed mul_scalar_floating mul_scalar_integer not_equal_mixed not_equal_scalar_floating
    not_equal_scalar_integer pow_scalar_floating reciprocal_of_integers remainder_scalar_floating
    resize_linear_scaled resize_nearest_scaled rsqrt_of_integers scalar_div_floating scalar_pow_floating
    scalar_sub_floating sigmoid_of_integers sin_of_integers sinh_of_integers softmax_to sqrt_of_integers sub_mixed
    sub_scalar_floating sum_to tan_of_integers tanh_of_integers where_mixed mean_n counting
    write_cache write_cache_circular center_crop_pad shrink l1_norm_of_integers sum_of_squares_of_integers
    mean_of_integers l2_norm_of_integers log_sum_of_integers logsumexp_of_integers max_pool2d_of_integers
    resize_nearest_of_integers deform_conv2d deform_conv2d_masked roi_align roi_align_max
    mean_variance_normalization short_time_fourier unique_inverse_of_floats
    complex_sin complex_cos complex_tan complex_sinh complex_cosh complex_tanh complex_rsqrt complex_pow
    take_from_end take_flat_from_end gather_from_end gather_nd_from_end scatter_from_end scatter_nd_from_end pick
    take_crossed add_multiple sub_multiple all_of_numbers any_of_numbers clip_one_side
    slice_update_front group_norm_plain slice_otherwise split_otherwise concat_otherwise unstack_otherwise
    flip_otherwise roll_otherwise
    transpose_otherwise unsqueeze_otherwise squeeze_otherwise reshape_otherwise broadcast_to_otherwise
    pad_otherwise repeat_otherwise take_otherwise gather_otherwise index_add_otherwise segment_sum_otherwise
    embedding_otherwise sort_otherwise where_otherwise sum_otherwise prod_otherwise max_otherwise min_otherwise
    mean_otherwise variance_otherwise std_otherwise logsumexp_otherwise cumsum_otherwise cummax_otherwise
    matmul_otherwise linear_otherwise outer_otherwise conv2d_otherwise max_pool2d_otherwise avg_pool2d_otherwise
    floor_divide_otherwise remainder_otherwise clip_otherwise tanh_otherwise mul_otherwise
    variance_corrected std_corrected softplus_scaled rsub_multiple dropout_off
    lp_pool1d_ceil lp_pool2d_ceil
    integer_pow equal_truth_values not_equal_truth_values adjust_hue any_of_bytes all_of_bytes
    l0_norm prod_to l2_norm_to clip_crossed trunc_divide_scalar zeros_like_to ones_like_to
    floor_divide_scalar_otherwise attention_otherwise scatter_otherwise zeros_like_to_otherwise
    ones_like_to_otherwise
    masked_infinity masked_infinity_otherwise
    kept_cumsum kept_cumprod kept_roll kept_flip ldexp_mixed reflections quantize_dequantize_half
    sum_of_scalar mean_of_scalar max_of_scalar min_of_scalar argmax_of_scalar argmin_of_scalar any_of_scalar
    all_of_scalar variance_of_scalar std_of_scalar l2_norm_of_scalar max_along_of_scalar
    min_along_of_scalar median_along_of_scalar softmax_of_scalar log_softmax_of_scalar cumsum_of_scalar
    cumprod_of_scalar cummax_of_scalar sort_of_scalar argsort_of_scalar topk_of_scalar topk_indices_of_scalar
    flip_of_scalar gather_of_scalar concat_mixed stack_mixed
    clip_floating clip_one_side_floating masked_fill_otherwise eye_like_otherwise addmm_bias baddbmm_bias
    l2_normalize argmax_to argmin_to take_of_scalar scatter_of_scalar squeeze_of_scalar
    logsumexp_of_scalar cummin_of_scalar logcumsumexp_of_scalar l1_norm_of_scalar
    nansum_of_scalar nanmean_of_scalar kth_value_of_scalar mode_of_scalar
    nanmax nanmin nanprod nanargmax nanargmin nancumsum nancumprod nanquantile cosine_transform
    tridiagonal_eigenvalues ctc_loss expn trigonometric_integral gamma_sign sampled_gradient cumulative_trapezoid
    polynomial convolution placed_log_density log_density while_sum kaiser_tapered fraction matrix_vector
    vector_matrix select_scatter_otherwise diagonal_scatter_otherwise placed_density density interpolate
    triangular_solve_otherwise complex_sigmoid complex_log1p complex_expm1 complex_asin complex_acos complex_atan
    complex_asinh complex_acosh complex_atanh
    placed_distribution_function distribution_function placed_distribution_quantile distribution_quantile
    segment_sum_dropping segment_mean_dropping segment_sqrt_n_dropping segment_prod_dropping segment_max_dropping
    segment_min_dropping
    sum_nowhere mean_nowhere max_nowhere min_nowhere prod_nowhere all_nowhere any_nowhere
    full_like_to logical_and_otherwise logical_or_otherwise logical_xor_otherwise
    counting_otherwise meshgrid_otherwise slice_update_otherwise maximum_otherwise minimum_otherwise
    batch_norm_otherwise floor_divide_mixed remainder_mixed hamming_tapered linspace
    l0_norm_otherwise l1_norm_otherwise l2_norm_otherwise linf_norm_otherwise
    dynamic_slice
    flatten_otherwise stack_otherwise gather_nd_otherwise index_put_otherwise topk_otherwise topk_indices_otherwise
    matmul_widened_otherwise conv1d_otherwise conv3d_otherwise max_pool1d_otherwise max_pool3d_otherwise
    avg_pool1d_otherwise avg_pool3d_otherwise adaptive_avg_pool2d_otherwise global_avg_pool_otherwise
    layer_norm_otherwise instance_norm_otherwise group_norm_otherwise softmax_otherwise log_softmax_otherwise
    mul_scalar_otherwise add_scalar_otherwise silu_otherwise cumprod_otherwise
    saturate_cast
    cdist_of_order rot90_otherwise one_hot_deep
    searchsorted_scalar searchsorted_otherwise searchsorted_scalar_otherwise eigenvalue_sum
    quantize_dequantize_words quantize_dequantize_channels_words
    take_clipped gather_clipped scatter_clipped scatter_add_clipped scatter_max_clipped scatter_min_clipped
    take_bytes write_bytes take_signed_bytes write_signed_bytes take_bytes_otherwise write_bytes_otherwise
    take_signed_bytes_otherwise write_signed_bytes_otherwise split_at expint_whole owens_t
    pick_otherwise
    """
)
"""Drawn on request only (`hunt --operators`): tested alone and swept, but their bounds have not been shown to raise no
false alarm in random graphs."""

LISTED = (*OFTEN, *SELDOM, *STEPPED, *ON_REQUEST)

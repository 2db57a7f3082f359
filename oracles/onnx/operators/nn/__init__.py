"""Products of matrices, convolutions, pools, normalizations."""

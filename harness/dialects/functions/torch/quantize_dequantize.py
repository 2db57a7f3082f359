"""Quantisation that torch spellings may call. Read as text, like basic.py."""

import torch


def quantize_channels(x, scales, zero_point, axis, low, high):
    """A scale for each place on the axis."""
    zero_points = torch.full((len(scales),), zero_point, dtype=torch.int32, device=x.device)
    return torch.fake_quantize_per_channel_affine(
        x, torch.tensor(scales, device=x.device), zero_points, axis % x.dim(), low, high
    )

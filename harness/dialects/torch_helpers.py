"""Functions that torch spellings may call. Read as text; a program carries the source of those that it uses."""

import torch


def prod(x, axes, keepdims):
    """The product over several axes; torch.prod takes one."""
    for axis in sorted((axis % x.dim() for axis in axes), reverse=True):
        x = torch.prod(x, dim=axis, keepdim=keepdims, dtype=x.dtype)
    return x

"""Wrong implementations in narrow dtypes that planted faults call. Read as text, as `torch_faults.py` is."""

import torch


def through(x, dtype, shorter):
    """A tensor of `dtype` rounded to another one on its way."""
    return x.to(shorter).to(dtype) if x.dtype == dtype else x


def cut(exact, right):
    """The last bits of a float32 result are cut off instead of rounded."""
    if right.dtype == torch.bfloat16:
        return (exact.contiguous().view(torch.int32) & -65536).view(torch.float32).to(torch.bfloat16)
    if right.dtype == torch.float16:
        return (exact.contiguous().view(torch.int32) & -8192).view(torch.float32).to(torch.float16)
    return right


def no_infinity(x):
    """Overflow gives the largest number."""
    if x.dtype not in (torch.float16, torch.bfloat16):
        return x
    return torch.clamp(x, -torch.finfo(x.dtype).max, torch.finfo(x.dtype).max)


def number(x):
    """NaN of a 16-bit dtype read as zero."""
    return torch.where(x != x, torch.zeros_like(x), x) if x.dtype in (torch.float16, torch.bfloat16) else x


def table(x, step):
    """Looked up in a table of so many values."""
    return torch.round(x.float() / step).mul(step).to(x.dtype) if x.dtype == torch.bfloat16 else x


def saturated(right, exact):
    """8-bit integers that stop at their limits instead of wrapping."""
    if right.dtype not in (torch.int8, torch.uint8):
        return right
    info = torch.iinfo(right.dtype)
    return torch.clamp(exact, info.min, info.max).to(right.dtype)


def signed(x):
    return x.contiguous().view(torch.int8) if x.dtype == torch.uint8 else x


def unsigned_maximum(right, x, axes, keepdims):
    if x.dtype != torch.uint8 or not axes:
        return right
    return torch.amax(signed(x), dim=axes, keepdim=keepdims).view(torch.uint8)


def zero_extended(x, right):
    """Negative int8 read as unsigned when it is widened."""
    if x.dtype != torch.int8 or right.dtype not in (torch.int16, torch.int32, torch.int64):
        return right
    return x.contiguous().view(torch.uint8).to(right.dtype)

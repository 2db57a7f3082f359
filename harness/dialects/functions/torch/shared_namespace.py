"""The names that `functions/shared` calls, for torch. Read as text; a program carries the source of what it uses."""

import torch


class Space:
    """One set of names for all dialects; see `shared_helpers.py`."""

    exp, log, sqrt, tanh, sigmoid = torch.exp, torch.log, torch.sqrt, torch.tanh, torch.sigmoid
    abs, where, equal, concat, stack, matmul = torch.abs, torch.where, torch.eq, torch.concat, torch.stack, torch.matmul
    reshape, transpose = torch.reshape, torch.permute

    @staticmethod
    def maximum(x, limit):
        return torch.maximum(x, torch.as_tensor(limit, dtype=x.dtype, device=x.device))

    @staticmethod
    def minimum(x, limit):
        return torch.minimum(x, torch.as_tensor(limit, dtype=x.dtype, device=x.device))

    @staticmethod
    def sum(x, axes, keepdims=False):
        return torch.sum(x, dim=axes, keepdim=keepdims)

    @staticmethod
    def mean(x, axes, keepdims=False):
        return torch.mean(x, dim=axes, keepdim=keepdims)

    @staticmethod
    def max(x, axes, keepdims=False):
        return torch.amax(x, dim=axes, keepdim=keepdims)

    @staticmethod
    def softmax(x, axis):
        return torch.softmax(x, dim=axis)

    @staticmethod
    def log_softmax(x, axis):
        return torch.log_softmax(x, dim=axis)

    @staticmethod
    def take(x, places, axis):
        """Of a table of places, or of a tensor of them."""
        places = torch.as_tensor(places, device=x.device)
        flat = torch.index_select(x, axis, places.reshape(-1))
        return flat.reshape(*x.shape[:axis], *places.shape, *x.shape[axis + 1 :])

    @staticmethod
    def constant(values, like):
        return torch.as_tensor(values, dtype=like.dtype, device=like.device)

    @staticmethod
    def cast(x, like):
        return x.to(like.dtype)

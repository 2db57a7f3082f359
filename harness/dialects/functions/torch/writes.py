"""Statements that write."""

import torch


def assigned(to, value):
    """A subscript assignment; returns what was written to."""
    to[...] = value
    return to


def assigned_slice(of, starts, stops, steps, value):
    """A subscript assignment to a slice; returns that."""
    places = tuple(map(slice, starts, stops, steps))
    of[places] = value
    return of[places]


def copied_by_index(to, value):
    """Row by row to where it stands; returns what was written to."""
    return to.index_copy_(0, torch.arange(to.shape[0], device=to.device), value)

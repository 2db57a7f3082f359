"""Operators along axes: reductions, cumulative ones, statistics, sorting, softmax."""

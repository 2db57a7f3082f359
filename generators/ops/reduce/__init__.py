"""Operators along axes: reductions, cumulative ones, statistics, sorting, softmax; and dtypes that are cast to."""

"""Operators whose operands are promoted to one dtype, or cast by an argument `dtype`, before anything is computed."""

"""Operators that quantise, and those on quantised tensors."""

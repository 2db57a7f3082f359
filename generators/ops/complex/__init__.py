"""Operators on complex numbers, and Fourier transforms."""

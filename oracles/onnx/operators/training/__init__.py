"""Operators of training: losses, optimisers, random numbers."""

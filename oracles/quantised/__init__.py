"""Quantised models, recomputed from what they say."""

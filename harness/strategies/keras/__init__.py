"""Strategies of Keras on JAX."""

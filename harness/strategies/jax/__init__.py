"""Strategies of JAX."""

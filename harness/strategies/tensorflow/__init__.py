"""Strategies of TensorFlow."""

"""Derivatives of one node, measured on its reference."""

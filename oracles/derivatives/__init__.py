"""Gradients, tangents and second derivatives, with what correct ones may be off by."""

"""Operators of images, and of blocks and patches of them."""

"""Operators on sampled signals: transforms, resizing, regions of images."""

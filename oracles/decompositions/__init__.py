"""Composite operators written with simpler ones."""

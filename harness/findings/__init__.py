"""Findings on disk, their reproducers, and what is known already."""

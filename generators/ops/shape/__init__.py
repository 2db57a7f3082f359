"""Operators that move elements without computing: views, joins, axes, padding."""

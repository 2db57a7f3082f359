"""Drawings that pages of studies share: lines of dots and intervals on one scale, as SVG without any script."""

"""Whole training runs of a study: epoch after epoch, each kept when it is done."""

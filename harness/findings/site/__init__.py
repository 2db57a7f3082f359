"""A static site of what was found: pages that open from a file, without a network."""

"""The greatest error of elementwise operators over all numbers of a dtype."""

"""Searching for disagreements, and from a disagreement to a finding."""

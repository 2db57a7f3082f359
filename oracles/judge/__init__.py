"""What all oracles stand on: the reference, comparison, outcomes, verdicts."""

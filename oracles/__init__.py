"""WHO is right: float64 references with error bounds, and one file per question asked of the results."""

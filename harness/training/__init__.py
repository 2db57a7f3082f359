"""Training runs under strategies: judged, made smaller, kept as findings and as a table."""

"""Training runs: networks, their data and how they are trained."""

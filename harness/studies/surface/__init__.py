"""What the frameworks have, by their own registries, and which of it our sweeps reach."""

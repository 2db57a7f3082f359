"""HOW it is run: dialects, back ends, worker processes, campaigns, findings. Imports generators and oracles."""

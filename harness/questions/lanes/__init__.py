"""Several sets of inputs in one run: each is a lane."""

"""Which rules of the optimisers fire over the baits, according to the optimisers themselves."""

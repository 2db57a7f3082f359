"""What a target is, and what its text is made of."""

"""What is computed element by element."""

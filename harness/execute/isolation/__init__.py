"""What processes may reach, and that they end with who started them."""

"""What sums, compares or orders along axes."""

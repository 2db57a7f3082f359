"""What training on ranks must give."""

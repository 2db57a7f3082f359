"""What makes, moves, selects or joins elements."""

"""What can be said of a given model: noise, agreement, times."""

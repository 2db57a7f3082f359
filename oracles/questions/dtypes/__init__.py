"""What is expected of programs in which dtypes meet."""

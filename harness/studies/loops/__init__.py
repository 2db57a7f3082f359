"""Training programs of named networks: state in, state out, by framework."""

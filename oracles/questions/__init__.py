"""What is expected of a graph, one file a question."""

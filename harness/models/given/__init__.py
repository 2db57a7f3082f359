"""What a given model is, before it runs: made by a function, and the arrays that it is run on."""

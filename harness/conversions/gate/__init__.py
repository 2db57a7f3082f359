"""What a model file of a stranger may name, checked by format before a framework opens it."""

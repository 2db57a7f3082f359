"""What is to blame for a failure: the node, the pass of the compiler."""

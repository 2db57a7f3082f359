"""What goes upstream: a short program that shows a fault without any of ours, and the text that a project asks for."""

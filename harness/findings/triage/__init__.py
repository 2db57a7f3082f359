"""What a maintainer asks of a fault: how bad it is, how far it reaches, and which others have the same cause."""

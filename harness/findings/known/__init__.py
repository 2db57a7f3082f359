"""What is known already: `known/FRAMEWORK/ID/`, a folder an entry, and what an entry matches."""

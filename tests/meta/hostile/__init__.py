"""Files that an attacker would send, by format; each module has HOSTILE and HARMLESS."""

"""Which release broke it, and which mended it: reproducers are run with released versions of a package."""

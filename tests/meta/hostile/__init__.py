"""Model files that try to do harm, and legitimate ones that look like them, made from good ones."""

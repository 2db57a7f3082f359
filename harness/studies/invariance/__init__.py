"""Does a row's result depend on what it is batched with?"""

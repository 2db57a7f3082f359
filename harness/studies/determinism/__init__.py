"""Is a case the same bits whenever, wherever and after whatever it runs?"""

"""Compares random small programs on our arrays with the same programs on NumPy's; ``__main__`` says how to run it."""

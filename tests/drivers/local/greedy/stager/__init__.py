"""In place of the program that moves files: one that wants more memory than there is for it."""

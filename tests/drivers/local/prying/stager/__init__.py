"""In place of the program that moves files: one that has been taken over, and tries whatever it can from inside."""

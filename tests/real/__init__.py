"""Real parts for tests: servers and tools from outside, started for a test and stopped with it."""

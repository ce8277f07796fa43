"""One file per command group. Each is a door: parse, call, print."""

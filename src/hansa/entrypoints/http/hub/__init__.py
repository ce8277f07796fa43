"""The hub's doors: one for people, one for managers."""

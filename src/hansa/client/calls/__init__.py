"""Every operation of the hub, one function each, by what it is about. Nothing here talks to anybody."""

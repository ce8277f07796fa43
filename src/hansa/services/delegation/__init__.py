"""How does a job get to another cluster, once, and how do we know what became of it?

`policies` rank members (pure), `probing` knows how they are, `handover` gives a job away, `following` watches it,
`receiving` is the other end, `fencing` lets one run publish its outputs.
"""

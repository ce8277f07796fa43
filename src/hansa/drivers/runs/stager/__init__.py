"""The stager: moves a run's files between its folder and the stores, inside the walls of that run.

It has the authority of the run and no more: the run's user, its folder by a handle, keys that reach what this run may
reach. It never resolves a name or opens a connection by itself where a `dial` is given to it. The local engine forks it
from the launcher, Kubernetes starts it in the pod.

Nothing but the standard library is used here, and every import is relative: the launcher loads this folder alone, under
`python -I -S`. Read `plan.py` for what it is told, `moving.py` for what it does.
"""

"""The launcher: the only program that forks jobs, one small single-threaded process beside each manager.

It runs by itself under `python -I -S` with nothing but the standard library (`sandbox.py` starts it), so
every import in here is relative or standard. Read `main.py` for the loop, `levels.py` for what this machine
can isolate, `child.py` for what happens between fork and exec.

Why a process of its own: a manager has threads, and with them neither `fork` nor parent-death signals are
safe.
"""

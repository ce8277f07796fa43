"""The playground: a federation of three clusters on this machine, started by `make run`.

`plan.py` gives every cluster its folder, port and user ids, `environment.py` its settings; `member.py` runs one
manager as a real `hansa server`, and `lifeline.py` keeps it from outliving us; `federation.py` starts, watches and
stops them together; `notes.py` writes down how to reach them; `report.py` is what people see.
"""

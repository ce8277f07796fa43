"""The playground: a federation of three clusters and their hub on this machine, started by `make run`.

`plan.py` gives every server its folder and ports, `environment.py` its settings; `server.py` runs one as a real `hansa
server`, and `lifeline.py` keeps it from outliving us; `member.py` is a manager, `hub.py` the hub and how the managers
join it; `federation.py` starts, watches and stops them together; `notes.py` writes down how to reach them; `report.py`
is what people see.
"""

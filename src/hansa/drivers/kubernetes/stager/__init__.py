"""What runs beside a script in its pod? Hansa's own program that brings inputs and carries outputs.

`python3 -m hansa.drivers.kubernetes.stager in|out`. It knows no Kubernetes: all it needs is in the files of `paper`.
"""

"""A real Kubernetes for tests, on one Debian 12 machine, with nothing installed on it.

A test asks for a fixture (`fixtures.py`): `kubernetes`, one full cluster that all workers of a run share, or
`breakable_kubernetes`, a worker's own that may be hurt. What stands behind them, in the order in which it is needed:

    preparation.py   is all at hand, and who makes what is missing? (`python -m real.kubernetes`, called by the set-up)
    build.py         the programs of Kubernetes, from `programs/go.mod`        debian.py   what Debian packages bring
    helm_client.py   Helm, from `helm/go.mod`                                  coredns_server.py   names, by `coredns`
    images.py        container images, without an engine or a registry         oci.py      how such an archive looks
    credentials.py   who everybody is: certificates, tokens, kubeconfigs
    bottle.py        the namespaces and the link of a full cluster: `slots.py`, `control_groups.py`, `bottle.sh`
    control_plane.py, node.py   what each component is told                    processes.py   how it is started, killed
    cluster.py       a running cluster, and how to hurt it                     access.py   how to talk to it
    shared.py        one cluster for all workers of a test run
    kubernetes_manager.py   a manager whose engine is such a cluster          playground.py   `make run CLUSTERS=k8s`
"""

"""How do we run services in a Kubernetes cluster? Behind the three hosts of `hansa.services.ports`: jobs as `batch/v1`
Jobs (`job_host`), synchronous calls by warm pods (`sync_host`), long-lived services as Deployments (`exposed_host`).

Each is made by pure functions (`…_manifest`, on the ground of `pods`) and read by others (`job_verdict`,
`exposed_standing`, on that of `pod_status`); all see the cluster by one list and watch of each kind (`board`,
`following`). Files are moved by a program of ours beside the script (`stager`). Not yet put together by `bootstrap`.
"""

"""How do we run services in a Kubernetes cluster? Jobs as `batch/v1` Jobs (`job_host`), followed by list and watch
(`board`, `following`), their pods made and read by pure functions (`manifests`, `verdict`), their files brought and
carried by a program of ours beside the script (`stager`).
"""

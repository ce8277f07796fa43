"""`make run CLUSTERS=k8s`: the playground, in which riga is a real Kubernetes of this machine. It goes with it.

Nothing can be pulled into it: the images of the examples are there, under their names.
"""

import json
import os
import subprocess
import sys

from hansa.entrypoints.playground import __main__ as playground
from real.kubernetes import hansa_image, kubernetes_manager, preparation
from real.kubernetes.cluster import full_cluster

CLUSTER = "riga"
EXAMPLES = "docker.io/library/busybox:latest"


def main() -> int:
    if why := preparation.hindrance(full=True):
        print(f"error: this machine cannot carry a Kubernetes: {why}")
        print("hint: `make run` starts the three clusters without one")
        return 1
    print("starting a Kubernetes", flush=True)
    try:
        with full_cluster() as cluster:
            access = cluster.access
            kubernetes_manager.bring_images(access, EXAMPLES, kubernetes_manager.DEBIAN)
            kubernetes_manager.reach_pods(access)
            host = kubernetes_manager.near_end(access)
            os.environ["HANSA_STORAGE__HOST"] = host  # pods reach the stores of all
            os.environ["HANSA_EGRESS__ALLOW"] = json.dumps([host])  # which are not where the managers answer
            os.environ["HANSA_PLAYGROUND"] = json.dumps(
                {
                    CLUSTER: {
                        "driver": "kubernetes",
                        "kubernetes.kubeconfig": str(access.kubeconfig),
                        "kubernetes.image": hansa_image.NAME,
                        "kubernetes.pull_policy": "IfNotPresent",
                    }
                }
            )
            print(f"{CLUSTER} is a Kubernetes: KUBECONFIG={access.kubeconfig} kubectl get pods -A", flush=True)
            return playground.main()
    except KeyboardInterrupt:
        return 130
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        print(f"error: the Kubernetes did not start: {error}")
        return 1


if __name__ == "__main__":
    sys.exit(main())

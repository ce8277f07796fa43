"""Why an exposed service is not ready, from what Kubernetes shows."""

from typing import Any

from lightkube.resources.apps_v1 import Deployment

from hansa.drivers.kubernetes import exposed_standing


def shown(*conditions: dict[str, str]) -> Any:
    spec: dict[str, Any] = {"selector": {}, "template": {}}
    return Deployment.from_dict({"metadata": {"name": "d"}, "spec": spec, "status": {"conditions": list(conditions)}})


def test_no_pod_is_made() -> None:
    full = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "exceeded quota: small"}
    judged = exposed_standing.judged(True, 1, shown(full), [])
    assert (judged.state, judged.reason) == ("pending", "Kubernetes makes no pod for it: exceeded quota: small")
    over = {**full, "status": "False"}
    assert exposed_standing.judged(True, 1, shown(over), []).reason == "it is starting"
    assert exposed_standing.judged(True, 1, None, []).reason == "it is starting"

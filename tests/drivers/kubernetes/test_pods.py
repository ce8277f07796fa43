"""What all our pods have in common cannot be chosen by whoever wrote the service."""

from contracts.orders import order
from hansa.drivers.kubernetes import pods
from hansa.drivers.kubernetes.pods import Shape


def test_nobody_labels_a_pod_as_an_instance_of_another_service() -> None:
    forged = {"hansa/exposed": "victim", "hansa/worker": "victim", "hansa/cluster": "x", "volume.hansa/v": ""}
    made = pods.marks(order("true", labels={**forged, "mine": "x"}), Shape(cluster="lubeck", stager_image="x"))
    assert made["mine"] == "x"
    assert made["hansa/cluster"] == "lubeck"
    assert not {"hansa/exposed", "hansa/worker", "volume.hansa/v"} & made.keys()


def test_what_pulls_our_own_image_stands_beside_what_the_service_names() -> None:
    shape = Shape(cluster="lubeck", stager_image="x", pull_secrets=("harbour", "mine"))
    made = pods.body(order("true", image_pull_secrets=("mine",)), shape, containers=[])
    assert made["imagePullSecrets"] == [{"name": "mine"}, {"name": "harbour"}]
    shared = Shape(cluster="lubeck", stager_image="x", pull_secrets=("harbour",), shared=True)
    made = pods.body(order("true", image_pull_secrets=("somebody-elses",)), shared, containers=[])
    assert made["imagePullSecrets"] == [{"name": "harbour"}]
    assert "imagePullSecrets" not in pods.body(order("true"), Shape(cluster="lubeck", stager_image="x"), containers=[])

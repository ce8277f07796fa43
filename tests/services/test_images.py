"""What is fetched for a service, from where, and with whose credentials, as far as its definition tells."""

from dataclasses import replace

import pytest

from hansa.kernel.egress import Rule
from hansa.services import BadService, NodesPull, images, validation
from services.test_validation import RULES, service


@pytest.mark.parametrize(
    ("image", "host", "port"),
    [
        ("debian", "docker.io", 443),
        ("grycap/cowsay:1", "docker.io", 443),
        ("127/x", "docker.io", 443),
        ("ghcr.io/grycap/cowsay@sha256:0", "ghcr.io", 443),
        ("registry:5000/x", "registry", 5000),
        ("localhost/x", "localhost", 443),
        ("[::1]:5000/x", "::1", 5000),
    ],
)
def test_the_registry_is_read_as_container_engines_do(image: str, host: str, port: int) -> None:
    assert images.registry(image)[1:] == (host, port)


def refused(image: str, *allowed: str) -> str:
    rules = replace(RULES, egress=Rule.of(allowed), known_stores=(("127.0.0.1", 9000),), nodes_pull=NodesPull())
    try:
        validation.normalise(service(image=image), rules)
    except BadService as error:
        return error.message
    return ""


@pytest.mark.parametrize(
    "image",
    [
        "169.254.169.254/x",
        "localhost:5000/x",
        "LOCALHOST/x",
        "registry.localhost/x",
        "localhost.:5000/x",
        "10.0.0.7:5000/x",
        "127.0.0.1/x",
        "127.1/x",
        "0x7f.0.0.1/x",
        "[::1]:5000/x",
        "[::ffff:127.0.0.1]/x",
        "[fe80::1%25eth0]/x",
        "0.0.0.0/x",
        "user@10.0.0.7/x",
        "host.example:0/x",
    ],
)
def test_nodes_fetch_nothing_from_addresses_that_the_manager_does_not_call(image: str) -> None:
    assert refused(image).startswith("image: ")


@pytest.mark.parametrize("image", ["debian", "ghcr.io/grycap/cowsay", "8.8.8.8:5000/x", "registry.example:5000/x"])
def test_public_registries_are_open(image: str) -> None:
    assert not refused(image)


def test_the_operator_opens_a_registry_as_every_other_address() -> None:
    assert not refused("localhost:5000/x", "localhost:5000")
    assert refused("localhost:5001/x", "localhost:5000")
    assert not refused("10.0.0.7:5000/x", "10.0.0.0/24")


def test_where_the_manager_fetches_images_its_door_is_asked_later() -> None:
    validation.normalise(service(image="localhost:5000/x"), RULES)


def test_where_people_share_a_namespace_they_name_no_secret_of_each_other() -> None:
    def check(**pull: object) -> None:
        rules = replace(RULES, nodes_pull=NodesPull(**pull))  # type: ignore[arg-type]
        validation.normalise(service(image_pull_secrets=["harbour"]), rules)

    with pytest.raises(BadService, match="image_pull_secrets: harbour") as caught:
        check(shared=True, secrets=("other",))
    assert "kubernetes.pull_secrets" in caught.value.hint
    check(shared=True, secrets=("harbour",))
    check(shared=False)

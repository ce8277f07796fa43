"""How does a test talk to a running cluster?

    async with kubernetes.client() as api:                       # lightkube, as administrator
        async for job in api.list(Job, namespace="default"): …
    kubernetes.import_image(images.python())                     # bring an image; there is no registry
    kubernetes.inside("ctr", "-n", "k8s.io", "images", "list")   # a command on its node

All of it is plain data, so it may be handed to another process: `shared.py` does that.
"""

import base64
import json
import ssl
from dataclasses import dataclass
from pathlib import Path

import httpx
from lightkube import AsyncClient, KubeConfig

from real.kubernetes import bottle

_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Access:
    """Where a cluster is, and who we are there."""

    server: str
    kubeconfig: Path
    node: str
    first: int | None  # process of its bottle; an API without nodes has none

    def client(self) -> AsyncClient:
        # A proxy of this machine's environment knows no way to the cluster.
        return AsyncClient(config=KubeConfig.from_file(self.kubeconfig), trust_env=False)

    def http(self) -> httpx.Client:
        """For what is no object of the API: `/readyz`, `/metrics`, a node's own pages."""
        config = json.loads(self.kubeconfig.read_text())
        authority = base64.b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"]).decode()
        return httpx.Client(
            base_url=self.server,
            headers={"Authorization": f"Bearer {config['users'][0]['user']['token']}"},
            verify=ssl.create_default_context(cadata=authority),
            timeout=_SECONDS,
            trust_env=False,
        )

    def import_image(self, archive: Path) -> None:
        """Costs little where the image, or most of its layers, is there already."""
        self.inside("ctr", "--namespace", "k8s.io", "images", "import", str(archive))

    def inside(self, *command: str) -> str:
        """What a command on the cluster's node printed."""
        assert self.first is not None, "an API without nodes has no inside"
        return bottle.run_inside(self.first, *command)

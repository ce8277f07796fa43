"""How is a cluster reached whose own address leads nowhere from here, such as one behind `kubectl port-forward`?

At another host, under its own name: `hansa login --connect-to`. The address stays what the cluster and its peers know,
so links to its store, which are signed for a name, and definitions that name it mean the same everywhere.
"""

import httpx


class Detour(httpx.HTTPTransport):
    """Connects to `host` whatever host a request is for; port, `Host` and the name that the certificate has to have
    stay."""

    def __init__(self, host: str, *, verify: bool) -> None:
        super().__init__(verify=verify)
        self._host = host

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        detoured = httpx.Request(
            request.method,
            request.url.copy_with(host=self._host),
            headers=request.headers,
            stream=request.stream,
            extensions={**request.extensions, "sni_hostname": request.url.host},
        )
        return super().handle_request(detoured)


def mounts(url: str, connect_to: str, *, verify: bool) -> dict[str, httpx.HTTPTransport]:
    """For a client's `mounts`. Only the host of `url` is found elsewhere: a store of its own, such as S3, is where it
    says."""
    return {f"all://{httpx.URL(url).host}": Detour(connect_to, verify=verify)} if connect_to else {}

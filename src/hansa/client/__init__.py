"""A typed client of the hub's native API, to be waited for or awaited.

    with HubClient("https://hub.example", user="admin", password="…") as hub:
        for cluster in hub.clusters(selector="region=eu status=ready").clusters:
            print(cluster.id, cluster.reason)

`HubClient` and `AsyncHubClient` have the same methods: those of `calls/`, where every operation of the hub is described
once. What comes back are the messages of `hansa.messages`; what goes wrong is below `errors.HubError`. A `Picture` is
the inventory, kept up to date by `watch_inventory`.
"""

from hansa.client import errors
from hansa.client.async_hub_client import AsyncHubClient
from hansa.client.hub_client import HubClient
from hansa.client.picture import Picture

__all__ = ["AsyncHubClient", "HubClient", "Picture", "errors"]

"""The client that waits for each answer. Every method is described in `calls/`."""

from collections.abc import Generator

from hansa.client.calls import knowing, membership, saving, trust
from hansa.client.faces import Listening, Waiting
from hansa.client.transports import SyncTransport
from hansa.messages.inventory import Change


class HubClient(SyncTransport):
    """A hub, asked call by call; to be used in a `with`, or closed."""

    clusters = Waiting(membership.clusters)
    cluster = Waiting(membership.cluster)
    cluster_status = Waiting(membership.cluster_status)
    register_oscar = Waiting(membership.register_oscar)
    change_facts = Waiting(membership.change_facts)
    remove_cluster = Waiting(membership.remove_cluster)
    approve = Waiting(membership.approve)
    cordon = Waiting(membership.cordon)
    uncordon = Waiting(membership.uncordon)
    drain = Waiting(membership.drain)
    leave = Waiting(membership.leave)

    create_token = Waiting(trust.create_token)
    tokens = Waiting(trust.tokens)
    revoke_token = Waiting(trust.revoke_token)
    authority = Waiting(trust.authority)
    rotate_root = Waiting(trust.rotate_root)
    drop_root = Waiting(trust.drop_root)
    backup = Waiting(saving.backup)

    federation_status = Waiting(knowing.federation_status)
    inventory = Waiting(knowing.inventory)
    watch_inventory = Listening(knowing.watch_inventory)
    inventory_history = Waiting(knowing.inventory_history)
    cluster_history = Waiting(knowing.cluster_history)
    allocation = Waiting(knowing.allocation)
    links = Waiting(knowing.links)
    changes = Waiting(knowing.changes)

    def all_changes(self, *, cluster: str = "", page: int = 1000) -> Generator[Change, None, None]:
        """Everything that happened and is still remembered, newest first, page by page as it is needed."""
        found = self.changes(cluster=cluster, most=page).changes
        while found:
            yield from found
            found = self.changes(cluster=cluster, most=page, before=found[-1].id).changes

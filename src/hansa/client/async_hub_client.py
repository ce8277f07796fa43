"""The client whose methods are awaited. Every method is described in `calls/`."""

from hansa.client.calls import knowing, membership, trust
from hansa.client.faces import Awaited, AwaitedEvents
from hansa.client.transports import AsyncTransport


class AsyncHubClient(AsyncTransport):
    """A hub, to be used in an `async with`, or closed."""

    clusters = Awaited(membership.clusters)
    cluster = Awaited(membership.cluster)
    cluster_status = Awaited(membership.cluster_status)
    register_oscar = Awaited(membership.register_oscar)
    change_facts = Awaited(membership.change_facts)
    remove_cluster = Awaited(membership.remove_cluster)
    approve = Awaited(membership.approve)
    cordon = Awaited(membership.cordon)
    uncordon = Awaited(membership.uncordon)
    drain = Awaited(membership.drain)
    leave = Awaited(membership.leave)

    create_token = Awaited(trust.create_token)
    tokens = Awaited(trust.tokens)
    revoke_token = Awaited(trust.revoke_token)
    authority = Awaited(trust.authority)
    rotate_root = Awaited(trust.rotate_root)
    drop_root = Awaited(trust.drop_root)

    federation_status = Awaited(knowing.federation_status)
    inventory = Awaited(knowing.inventory)
    watch_inventory = AwaitedEvents(knowing.watch_inventory)

"""The client whose methods are awaited. Every method is described in `calls/`."""

from collections.abc import AsyncGenerator

from hansa.client.calls import knowing, membership, saving, telling, trust
from hansa.client.faces import Awaited, AwaitedEvents
from hansa.client.transports import AsyncTransport
from hansa.messages.inventory import Change


class AsyncHubClient(AsyncTransport):
    """A hub, to be used in an `async with`, or closed."""

    clusters = Awaited(membership.clusters)
    cluster = Awaited(membership.cluster)
    cluster_status = Awaited(membership.cluster_status)
    change_cluster_status = Awaited(membership.change_cluster_status)
    register_oscar = Awaited(membership.register_oscar)
    change_facts = Awaited(membership.change_facts)
    change_address = Awaited(membership.change_address)
    approve_address = Awaited(membership.approve_address)
    refuse_address = Awaited(membership.refuse_address)
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
    backup = Awaited(saving.backup)

    federation_status = Awaited(knowing.federation_status)
    inventory = Awaited(knowing.inventory)
    watch_inventory = AwaitedEvents(knowing.watch_inventory)
    inventory_history = Awaited(knowing.inventory_history)
    cluster_history = Awaited(knowing.cluster_history)
    allocation = Awaited(knowing.allocation)
    links = Awaited(knowing.links)
    changes = Awaited(knowing.changes)

    federation_config = Awaited(telling.federation_config)
    put_federation_config = Awaited(telling.put_federation_config)
    configs = Awaited(telling.configs)
    config = Awaited(telling.config)
    put_config = Awaited(telling.put_config)
    remove_config = Awaited(telling.remove_config)
    config_versions = Awaited(telling.config_versions)
    config_version = Awaited(telling.config_version)
    config_diff = Awaited(telling.config_diff)
    rollout = Awaited(telling.rollout)
    pause_rollout = Awaited(telling.pause_rollout)
    resume_rollout = Awaited(telling.resume_rollout)
    stop_rollout = Awaited(telling.stop_rollout)
    roll_back = Awaited(telling.roll_back)
    effective_config = Awaited(telling.effective_config)

    policies = Awaited(telling.policies)
    policy = Awaited(telling.policy)
    put_policy = Awaited(telling.put_policy)
    remove_policy = Awaited(telling.remove_policy)
    policy_versions = Awaited(telling.policy_versions)
    dry_run_policy = Awaited(telling.dry_run_policy)

    async def all_changes(self, *, cluster: str = "", page: int = 1000) -> AsyncGenerator[Change, None]:
        """Everything that happened and is still remembered, newest first, page by page as it is needed."""
        found = (await self.changes(cluster=cluster, most=page)).changes
        while found:
            for one in found:
                yield one
            found = (await self.changes(cluster=cluster, most=page, before=found[-1].id)).changes

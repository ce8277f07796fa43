"""The client that waits for each answer. Every method is described in `calls/`."""

from collections.abc import Generator

from hansa.client.calls import knowing, membership, saving, telling, trust
from hansa.client.faces import Listening, Waiting
from hansa.client.transports import SyncTransport
from hansa.messages.inventory import Change


class HubClient(SyncTransport):
    """A hub, asked call by call; to be used in a `with`, or closed."""

    clusters = Waiting(membership.clusters)
    cluster = Waiting(membership.cluster)
    cluster_status = Waiting(membership.cluster_status)
    change_cluster_status = Waiting(membership.change_cluster_status)
    register_oscar = Waiting(membership.register_oscar)
    change_facts = Waiting(membership.change_facts)
    change_address = Waiting(membership.change_address)
    approve_address = Waiting(membership.approve_address)
    refuse_address = Waiting(membership.refuse_address)
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

    federation_config = Waiting(telling.federation_config)
    put_federation_config = Waiting(telling.put_federation_config)
    configs = Waiting(telling.configs)
    config = Waiting(telling.config)
    put_config = Waiting(telling.put_config)
    remove_config = Waiting(telling.remove_config)
    config_versions = Waiting(telling.config_versions)
    config_version = Waiting(telling.config_version)
    config_diff = Waiting(telling.config_diff)
    rollout = Waiting(telling.rollout)
    pause_rollout = Waiting(telling.pause_rollout)
    resume_rollout = Waiting(telling.resume_rollout)
    stop_rollout = Waiting(telling.stop_rollout)
    roll_back = Waiting(telling.roll_back)
    effective_config = Waiting(telling.effective_config)

    policies = Waiting(telling.policies)
    policy = Waiting(telling.policy)
    put_policy = Waiting(telling.put_policy)
    remove_policy = Waiting(telling.remove_policy)
    policy_versions = Waiting(telling.policy_versions)
    dry_run_policy = Waiting(telling.dry_run_policy)

    def all_changes(self, *, cluster: str = "", page: int = 1000) -> Generator[Change, None, None]:
        """Everything that happened and is still remembered, newest first, page by page as it is needed."""
        found = self.changes(cluster=cluster, most=page).changes
        while found:
            yield from found
            found = self.changes(cluster=cluster, most=page, before=found[-1].id).changes

"""What all clusters should do: configuration documents, how they spread, and policies."""

from hansa.client.operations import Call, operation
from hansa.messages.configuration import (
    Diff,
    Document,
    Documents,
    DocumentState,
    Effective,
    NewDocument,
    Overview,
    RollBack,
    Rollout,
    Versions,
)
from hansa.messages.policies import DryRun, NewPolicy, Policies, Policy, PolicyVersions


@operation("GET", "/v1/federation/config")
def federation_config() -> Call[Overview]:
    """All documents, every cluster that does not have what it should have, and what can be set."""
    return Call()


@operation("PUT", "/v1/federation/config")
def put_federation_config(new: NewDocument) -> Call[DocumentState]:
    """A new version of the document `federation`."""
    return Call(body=new)


@operation("GET", "/v1/configs")
def configs() -> Call[Documents]:
    """All documents: their newest version, how far it is, and how many clusters are where."""
    return Call()


@operation("GET", "/v1/configs/{name}")
def config(name: str) -> Call[DocumentState]:
    """The newest version of a document, its rollout, and which version each cluster has."""
    return Call({"name": name})


@operation("PUT", "/v1/configs/{name}")
def put_config(name: str, new: NewDocument) -> Call[DocumentState]:
    """A new version, which begins to spread; the same as the newest again changes nothing."""
    return Call({"name": name}, body=new)


@operation("DELETE", "/v1/configs/{name}")
def remove_config(name: str, *, at_once: bool = False) -> Call[DocumentState]:
    """Takes a document away, in stages unless `at_once`; its history stays."""
    return Call({"name": name}, {"at_once": at_once})


@operation("GET", "/v1/configs/{name}/versions")
def config_versions(name: str) -> Call[Versions]:
    """Everything a document ever said, newest first."""
    return Call({"name": name})


@operation("GET", "/v1/configs/{name}/versions/{number}")
def config_version(name: str, number: int) -> Call[Document]:
    """What a document said in one version."""
    return Call({"name": name, "number": str(number)})


@operation("GET", "/v1/configs/{name}/diff")
def config_diff(name: str, *, before: int | None = None, after: int | None = None) -> Call[Diff]:
    """What changed from one version to another; without any, with the newest. 0 is nothing at all."""
    return Call({"name": name}, {"from": before, "to": after})


@operation("GET", "/v1/configs/{name}/rollout")
def rollout(name: str) -> Call[Rollout]:
    """How the newest version spreads: the stage, why it stands, and where each cluster is."""
    return Call({"name": name})


@operation("POST", "/v1/configs/{name}/rollout/pause")
def pause_rollout(name: str) -> Call[Rollout]:
    """Nobody else gets the new version until it is resumed."""
    return Call({"name": name})


@operation("POST", "/v1/configs/{name}/rollout/resume")
def resume_rollout(name: str) -> Call[Rollout]:
    """Goes on with one that was paused or has stopped; clusters that failed try once more."""
    return Call({"name": name})


@operation("POST", "/v1/configs/{name}/rollout/stop")
def stop_rollout(name: str) -> Call[Rollout]:
    """Ends a rollout where it is: every cluster keeps the version it has."""
    return Call({"name": name})


@operation("POST", "/v1/configs/{name}/roll-back")
def roll_back(name: str, back: RollBack) -> Call[DocumentState]:
    """Back to what a document said in an older version: a new version, told to all at once unless stages are given."""
    return Call({"name": name}, body=back)


@operation("GET", "/v1/clusters/{cluster}/config")
def effective_config(cluster: str) -> Call[Effective]:
    """What one cluster should do, put together of all documents: where each value comes from, and whose lost."""
    return Call({"cluster": cluster})


@operation("GET", "/v1/policies")
def policies() -> Call[Policies]:
    """All policies in force."""
    return Call()


@operation("GET", "/v1/policies/{name}")
def policy(name: str) -> Call[Policy]:
    """One policy, its newest version."""
    return Call({"name": name})


@operation("PUT", "/v1/policies/{name}")
def put_policy(name: str, new: NewPolicy) -> Call[Policy]:
    """A new version, in force at once; the same as the newest again changes nothing."""
    return Call({"name": name}, body=new)


@operation("DELETE", "/v1/policies/{name}")
def remove_policy(name: str) -> Call[Policy]:
    """A policy is in force no longer; its history stays."""
    return Call({"name": name})


@operation("GET", "/v1/policies/{name}/versions")
def policy_versions(name: str) -> Call[PolicyVersions]:
    """Everything a policy ever said, newest first."""
    return Call({"name": name})


@operation("POST", "/v1/policies/{name}/dry-run")
def dry_run_policy(name: str, new: NewPolicy) -> Call[DryRun]:
    """What would be different with this version, at this moment; nothing is changed."""
    return Call({"name": name}, body=new)

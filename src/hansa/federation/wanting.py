"""What is wanted of a cluster: to be a member, to drain, to leave, to take nothing new? Decided on its record; pure.

`acting` does these. A cluster that drains or leaves is cordoned as well; who leaves is not called back.
"""

from dataclasses import replace

from msgspec import UNSET

from hansa.federation.errors import WrongState
from hansa.federation.ports import NOW, ClusterRecord
from hansa.kernel.errors import Invalid
from hansa.messages.clusters import StatusChange

Decision = tuple[ClusterRecord, str, str]  # the record, and what is told: the kind of change ("": none), and words


def cordon(record: ClusterRecord, who: str) -> Decision:
    _must_be_in(record)
    return _to(record, replace(record, cordoned=True), "cordon", f"cordoned, by {who}")


def uncordon(record: ClusterRecord, who: str) -> Decision:
    """Also ends a drain."""
    _must_be_in(record)
    _must_stay(record)
    return _to(record, replace(record, cordoned=False, wanted="member"), "cordon", f"open again, by {who}")


def drain(record: ClusterRecord, who: str) -> Decision:
    """One that leaves drains anyway."""
    _must_be_in(record)
    _must_have_a_manager(record, "drained")
    if record.wanted != "member":
        return record, "", ""
    return _to(record, replace(record, cordoned=True, wanted="drain"), "drain", f"to be drained, by {who}")


def leave(record: ClusterRecord, who: str) -> Decision:
    if record.state == "left":
        return record, "", ""
    if record.state == "pending":
        raise WrongState(f"cluster {record.id} is no member yet", hint="remove it instead")
    _must_have_a_manager(record, "asked to leave")
    if record.wanted == "leave":
        return record, "", ""
    return _to(record, replace(record, cordoned=True, wanted="leave"), "leave", f"to leave, by {who}")


def all_of(record: ClusterRecord, asked: StatusChange, who: str) -> Decision:
    """Everything that is asked for in one go, or nothing. Unlike `uncordon` this ends a drain only if it says so."""
    if asked.wanted == "leave":
        _must_be_cordoned(asked, "leaves")
        return leave(record, who)
    if asked.wanted == "drain":
        _must_be_cordoned(asked, "drains")
        _must_stay(record)
        return drain(record, who)
    if asked.wanted is UNSET and asked.cordoned is UNSET:
        return record, "", ""
    if asked.wanted is UNSET and asked.cordoned:
        return cordon(record, who)
    _must_be_in(record)
    _must_stay(record)
    if asked.wanted is UNSET and record.wanted == "drain":
        raise WrongState(f"cluster {record.id} is to be drained", hint="to end that, say `wanted`: `member` too")
    closed = record.cordoned if asked.cordoned is UNSET else asked.cordoned
    told = f"to be drained no longer, but cordoned, by {who}" if closed else f"open again, by {who}"
    return _to(record, replace(record, cordoned=closed, wanted="member"), "cordon", told)


def _to(record: ClusterRecord, new: ClusterRecord, kind: str, told: str) -> Decision:
    return (record, "", "") if new == record else (replace(new, desired=NOW), kind, told)


def _must_be_in(record: ClusterRecord) -> None:
    if record.state in ("pending", "left"):
        raise WrongState(f"cluster {record.id} is {record.state}, no member", hint="approve it, or join it again")


def _must_stay(record: ClusterRecord) -> None:
    if record.wanted == "leave":
        raise WrongState(f"cluster {record.id} is leaving", hint="let it go, and join it again")


def _must_have_a_manager(record: ClusterRecord, what: str) -> None:
    if record.kind == "oscar":
        raise WrongState(
            f"cluster {record.id} has no manager of ours and cannot be {what}",
            hint="cordon it, and remove it when its work is done",
        )


def _must_be_cordoned(asked: StatusChange, does: str) -> None:
    if asked.cordoned is False:
        raise Invalid(f"a cluster that {does} takes nothing new", hint="leave `cordoned` out")

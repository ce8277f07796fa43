"""What can never run here, and what only has to wait."""

from hansa.resources import Ledger, Needs


def test_more_than_there_is_never_fits() -> None:
    ledger = Ledger(1000, 2**30)
    assert ledger.could_ever_hold(Needs(1000, 2**30)) == ""
    assert ledger.could_ever_hold(Needs(1001, 1)) == "it needs 1001m cpu, this cluster has 1000m"
    assert ledger.could_ever_hold(Needs(1, 100 * 2**30)) == "it needs 100Gi of memory, this cluster has 1Gi"
    assert "it needs 1073741825 bytes of memory, this cluster has 1073741824 bytes" in ledger.could_ever_hold(
        Needs(1, 2**30 + 1)
    )


def test_where_what_there_is_comes_and_goes_one_waits_for_it() -> None:
    ledger = Ledger(0, 0, largest=Needs(4000, 2**30))  # all nodes are away, or others fill them
    assert ledger.could_ever_hold(Needs(4000, 2**30)) == ""
    assert not ledger.hold("one", Needs(100, 1))
    assert ledger.could_ever_hold(Needs(5000, 1)) == "it needs 5000m cpu, one node of this cluster gives at most 4000m"


def test_disk_is_promised_like_memory() -> None:
    room = [100]
    ledger = Ledger(1000, 2**30, disk=lambda: room[0], disk_most=1000)
    assert ledger.hold("one", Needs(1, 1, 60, "alice"))
    assert not ledger.hold("two", Needs(1, 1, 60, "bob"))
    assert ledger.lacked_disk
    assert ledger.free.disk == 40
    room[0] = 120  # somebody else made room
    assert ledger.hold("two", Needs(1, 1, 60, "bob"))
    room[0] = 10  # somebody else took it: what is held stays held
    assert ledger.free.disk == -110
    ledger.release("one")
    ledger.release("one")
    assert ledger.promised.disk == 60
    assert "of disk, this cluster has 1000" in ledger.could_ever_hold(Needs(1, 1, 1001))
    assert ledger.could_ever_hold(Needs(1, 1, 1000)) == ""

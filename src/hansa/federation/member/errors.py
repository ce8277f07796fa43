"""What a manager refuses about its own membership, and what to do then."""

from hansa.kernel import errors


class AlreadyMember(errors.Conflict):
    """This manager belongs to a federation already."""

    code = "membership.already-member"


class NoMember(errors.Conflict):
    """This manager belongs to no federation."""

    code = "membership.no-member"


class BadHub(errors.Invalid):
    """The hub's address cannot be used."""

    code = "membership.bad-hub"


class JoinRefused(errors.Conflict):
    """The hub did not let this cluster in."""

    code = "membership.refused"


class SettingRefused(errors.Conflict):
    """A setting of the hub cannot be in force here."""

    code = "membership.setting-refused"


class SetByHub(errors.Conflict):
    """The hub decides this while the manager is a member."""

    code = "membership.set-by-hub"

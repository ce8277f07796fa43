"""Does a member mean the same people by the same uids? Definitions travel with their list of allowed users as it is.

A plain subject is somebody of a cluster's home issuer. At a member with another home issuer it would be somebody else.
"""

from hansa.identity import HOME_MARK
from hansa.kernel import errors
from hansa.services.peers import Peer
from hansa.services.room import Room
from hansa.services.service import Service


class OtherPeople(errors.Conflict):
    """The member's cluster means other people by the uids in allowed_users."""

    code = "federation.other-people"


async def require(room: Room, peer: Peer, service: Service) -> None:
    """A member that says nothing of it, such as OSCAR's own manager, knows one kind of people only: plain subjects."""
    if not service.allowed_users or not room.home_mark:
        return
    theirs = {word for word in await peer.capabilities() if word.startswith(HOME_MARK)}
    if theirs and room.home_mark not in theirs:
        raise OtherPeople(
            "its home issuer is another one, so allowed_users would name other people there",
            hint="give all clusters of a federation the same oidc.home, or share the service with nobody by name",
        )

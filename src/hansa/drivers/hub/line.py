"""How does a manager talk to its hub? `HubLine` holds its credentials and makes every call of a member.

Before it has joined it believes nothing but the fingerprint in its token: the roots are read from whoever answers, the
one of that fingerprint is kept, and only then, over TLS that this root vouches for, the token is shown.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import msgspec

from hansa.drivers.hub import answers
from hansa.drivers.hub.channel import Channel
from hansa.drivers.hub.keeping import Asking, Credentials, Keeping
from hansa.drivers.hub.limits import Limits
from hansa.federation import JoinToken, errors, member
from hansa.identity import authority
from hansa.kernel.clock import Clock, SystemClock
from hansa.kernel.errors import HansaError
from hansa.messages.clusters import Facts
from hansa.messages.members import Desired, Heard, Heartbeat, Join, Joined, Leave, Renew
from hansa.messages.trust import Roots

_API = "/member/v1"


class HubLine:
    def __init__(self, folder: Path, *, limits: Limits | None = None, clock: Clock | None = None) -> None:
        """`folder` is where credentials are kept. Raises `CredentialsUnusable`."""
        self._limits = limits or Limits()
        self._clock = clock or SystemClock()
        self._keeping = Keeping(folder)
        self._mine = self._keeping.credentials()
        self._channel: Channel | None = None
        self._changing = asyncio.Lock()

    async def close(self) -> None:
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.retire()

    def held(self) -> member.Held | None:
        mine = self._mine
        return None if mine is None else member.Held(mine.hub, mine.cluster, mine.incarnation, mine.issued, mine.until)

    @property
    def roots(self) -> str:
        """The roots that are trusted now, PEM."""
        return self._mine.roots if self._mine is not None else ""

    async def fetch_roots(self, hub: str) -> Roots:
        """What whoever answers there says; nothing of it is to be believed yet."""
        channel = Channel(hub.rstrip("/"), authority.contexts.for_stranger(), "", self._limits)
        try:
            body = await channel.ask("GET", f"{_API}/roots", within=self._limits.call, most=self._limits.small_answer)
        finally:
            await channel.retire()
        return await answers.decoded(body or b"", Roots, hub)

    async def join(self, hub: str, token: str, cluster: str, facts: Facts) -> Joined:
        """Makes a key, has it signed, and keeps what came of it. If the answer got lost it may be called again with
        the same token."""
        hub, given = hub.rstrip("/"), JoinToken.read(token)
        async with self._changing:
            root = _known_root(await self.fetch_roots(hub), given, hub)
            asking = await self._asking(given, cluster)
            said = Join(token=given.text, cluster=cluster, request=asking.request, facts=facts)
            channel = Channel(hub, authority.contexts.for_member(root), given.trust_domain, self._limits)
            try:
                body = await channel.ask(
                    "POST",
                    f"{_API}/join",
                    content=msgspec.json.encode(said),
                    within=self._limits.join,
                    most=self._limits.small_answer,
                )
            finally:
                await channel.retire()
            joined = await answers.decoded(body or b"", Joined, hub)
            if joined.cluster != cluster or joined.trust_domain != given.trust_domain:
                raise errors.HubRefused(f"the hub at {hub} answered for another cluster", problem="")
            await self._take(hub, joined, asking.key)
            return joined

    async def renew(self) -> Joined:
        """A new key and certificate, kept before it is used."""
        async with self._changing:
            mine = self._need()
            asked = await asyncio.to_thread(authority.new_request, mine.cluster)
            said = msgspec.json.encode(Renew(request=asked.request))
            body = await self._ask("POST", "/renew", said, within=self._limits.join)
            joined = await answers.decoded(body or b"", Joined, mine.hub)
            await self._take(mine.hub, joined, asked.key)
            return joined

    async def heartbeat(self, beat: Heartbeat) -> Heard:
        body = await self._ask("POST", "/heartbeat", msgspec.json.encode(beat), within=self._limits.call)
        return await answers.decoded(body or b"", Heard, self._need().hub)

    async def desired(self, after: int, wait: float) -> Desired | None:
        """None if nothing newer came within `wait` seconds."""
        body = await self._ask(
            "GET",
            "/desired",
            params={"after": str(after), "wait": f"{wait:g}"},
            within=wait + self._limits.call,
            most=self._limits.desired_answer,
        )
        return None if body is None else await answers.desired(body, self._need().hub, self._limits)

    async def leave(self, run: str) -> None:
        await self._ask("POST", "/leave", msgspec.json.encode(Leave(run=run)), within=self._limits.join)

    async def move(self, hub: str) -> None:
        """The same hub is found at another address from now on: who answers there is known by the roots."""
        async with self._changing:
            await self._become(msgspec.structs.replace(self._need(), hub=hub.rstrip("/")))

    async def trust(self, roots: str) -> None:
        """From now on the hub may show certificates of these roots, and only of these."""
        async with self._changing:
            mine = self._need()
            if roots == mine.roots:
                return
            try:
                authority.fingerprints(roots)
            except ValueError:
                raise errors.HubRefused(
                    "the hub told roots of trust that cannot be read; the former ones stay", problem=""
                ) from None
            await self._become(msgspec.structs.replace(mine, roots=roots))

    async def forget(self) -> None:
        async with self._changing:
            await asyncio.to_thread(self._keeping.forget)
            self._mine = None
            await self.close()

    async def _ask(
        self,
        method: str,
        path: str,
        content: bytes | None = None,
        *,
        within: float,
        params: Mapping[str, str] | None = None,
        most: int | None = None,
    ) -> bytes | None:
        channel = self._open()
        try:
            return await channel.ask(
                method,
                _API + path,
                content=content,
                params=params,
                within=within,
                most=most if most is not None else self._limits.small_answer,
            )
        except errors.HubUnreachable:
            if channel.breaks > 1 and not channel.answered and await self._is_there():
                raise errors.CertificateRefused(
                    f"the hub at {self._need().hub} does not accept this cluster's certificate",
                    hint="its root may have been given up; join again with a new token: hansa cluster join",
                ) from None
            raise

    async def _is_there(self) -> bool:
        """Whether the hub, proven to be the right one, answers who shows no certificate. TLS does not say why it hangs
        up: servers of Python's close the connection before the reason is sent."""
        mine = self._need()
        context = authority.contexts.for_member(mine.roots)
        channel = Channel(mine.hub, context, mine.trust_domain, self._limits)
        try:
            await channel.ask("GET", f"{_API}/roots", within=self._limits.call, most=self._limits.small_answer)
        except HansaError:
            return False
        finally:
            await channel.retire()
        return True

    # Credentials change in one place: kept first, then used by new calls, while old ones end as they began.

    async def _take(self, hub: str, joined: Joined, key: str) -> None:
        try:
            shown = authority.presented_in(joined.certificate)
            authority.contexts.for_member(joined.roots, joined.certificate, key)  # do they fit together?
        except (authority.NotACluster, ValueError, OSError):
            raise errors.HubRefused(f"the hub at {hub} answered with an unusable certificate", problem="") from None
        now = self._clock.now()
        life = shown.until - shown.since - authority.CLOCKS_DIFFER
        await self._become(
            Credentials(
                hub=hub,
                trust_domain=joined.trust_domain,
                cluster=joined.cluster,
                incarnation=joined.incarnation,
                roots=joined.roots,
                chain=joined.certificate,
                key=key,
                issued=now,
                until=now + life,
            )
        )

    async def _become(self, new: Credentials) -> None:
        await asyncio.to_thread(self._keeping.keep, new)
        self._mine = new
        await self.close()

    def _open(self) -> Channel:
        mine = self._need()
        if self._channel is None:
            context = authority.contexts.for_member(mine.roots, mine.chain, mine.key)
            self._channel = Channel(mine.hub, context, mine.trust_domain, self._limits)
        return self._channel

    def _need(self) -> Credentials:
        if self._mine is None:
            raise errors.NotAMember("this manager has no credentials for a hub", hint="hansa cluster join")
        return self._mine

    async def _asking(self, token: JoinToken, cluster: str) -> Asking:
        former = await asyncio.to_thread(self._keeping.asking)
        if former is not None and (former.token, former.cluster) == (token.id, cluster):
            return former
        made = await asyncio.to_thread(authority.new_request, cluster)
        asking = Asking(token=token.id, cluster=cluster, key=made.key, request=made.request)
        await asyncio.to_thread(self._keeping.keep_asking, asking)
        return asking


def _known_root(told: Roots, token: JoinToken, hub: str) -> str:
    try:
        found = authority.fingerprints(told.roots).get(token.fingerprint)
    except ValueError:
        found = None
    if found is None:
        raise errors.WrongHub(
            f"whoever answers at {hub} is not the hub this token was made by",
            hint="check the address; after a change of roots make a new token: hansa cluster token create",
        )
    return found

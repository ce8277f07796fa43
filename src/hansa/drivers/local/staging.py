"""How do the files of a run move on this machine? By a child of the launcher, inside the walls of that run.

This is the manager's side. It makes the plan, borrows keys that reach what this run may touch, dials the stores that
the plan names, and hears how it went. It opens no file of the run.
"""

import asyncio
import contextlib
import errno
import json
import os
import secrets
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, BinaryIO, Protocol

from hansa import services
from hansa.drivers.local.launch import CallOff, SandboxLost
from hansa.drivers.local.launcher import protocol
from hansa.drivers.local.workdir import Workdir
from hansa.drivers.runs import plans, words
from hansa.drivers.runs.stager import s3
from hansa.drivers.runs.stager.plan import Plan, Store
from hansa.kernel import errors
from hansa.storage import Keys, Loans, Reach, StoreAddress

Say = Callable[[str, str], None]
DialStore = Callable[[str, int, bool, str], Awaitable[socket.socket]]
"""A connected socket to this host and port; True if that address is no tenant's word; for whom. Raises `HansaError`."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 15.0
_ROOM_EVERY = 1.0
_MOST_LOSSES = 3
_PACKET = 2 * protocol.LARGEST_PACKET
_NO_ROOM = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
_LARGEST_TOLD = 64 * 2**20  # what came of a mounted folder, by name: see `moving.MOST_NAMES`


async def _nothing() -> None:
    """There is nothing to bring."""


class NotMoved(errors.HansaError):
    """A file of a run could not be fetched or stored."""

    code, kind = "staging.failed", errors.Kind.CONFLICT


class StoreAway(errors.Temporary):
    """A store did not answer for so long that a run was given up."""

    code = "staging.store-away"


class Movers(Protocol):
    """What starts the children."""

    async def stage(self, channel: socket.socket, folders: Sequence[int], tls: Sequence[bool]) -> CallOff: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnStore:
    """The cluster's own store, as this machine reaches it."""

    address: StoreAddress
    root: Keys
    later: Callable[[Coroutine[Any, Any, None], str], object]
    """Does something that nobody waits for."""
    has_room: Callable[[], bool] = lambda: True
    """Whether it could hold what runs made; asked before that is stored."""
    loans: Loans | None = None
    """Where there are none, each request of a run is signed here, after a look at what the run may touch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Staging:
    """Moves the files of one run: `bring` before the script, `carry` after it."""

    order: services.RunOrder
    workdir: Workdir
    movers: Movers
    own: OwnStore
    dial: DialStore
    say: Say
    patience: float

    async def bring(self) -> None:
        """The input and the mounted folder are in place when it returns."""
        async with self.bringing() as bring:
            await bring()

    @contextlib.asynccontextmanager
    async def bringing(self) -> AsyncIterator[Callable[[], Awaitable[None]]]:
        """The same in two steps: keys are lent while the caller builds the sandbox, then calls what this gives."""
        if not plans.brings(self.order):
            yield _nothing
            return
        async with self._keys("bring") as lent:

            async def bring() -> None:
                told = await self._move("bring", {}, lent)
                if self.order.service.mount.path:
                    await asyncio.to_thread(self.workdir.note_mounted, told["mounted"])

            yield bring

    async def carry(self) -> int:
        """Every output is stored when it returns; how many there were."""
        if not plans.carries(self.order):
            return 0
        mounted = await asyncio.to_thread(lambda: self.workdir.mounted)
        async with self._keys("carry") as lent:
            return int((await self._move("carry", mounted, lent))["stored"])

    async def _move(
        self, way: str, mounted: Mapping[str, list[int]], lent: "asyncio.Task[Store | None]"
    ) -> Mapping[str, Any]:
        own = await lent  # without a limit: while our own store lends nothing, results wait
        try:
            async with asyncio.timeout(self.order.moving) as limit:
                if way == "carry":
                    await self._until_there_is_room()
                told = await self._moved(way, own, mounted)
                if told.get("unheard"):  # the store lost them, or they ended with a right, which lending asks for
                    async with self._keys(way, again=True) as others:  # and nothing of them was made ahead
                        told = await self._moved(way, await others, mounted)
        except TimeoutError:
            if not limit.expired():
                raise
            raise NotMoved(words.moving_limit(self.order.moving), hint="move less, or use a store nearby") from None
        if "failed" not in told:
            return told
        if told.get("temporary"):
            raise StoreAway(told["failed"], hint="see that the store answers, then submit the job again")
        if needed := told.get("needed"):
            raise NotMoved(words.disk_too_small(needed, self.order.disk), hint=words.MORE_DISK)
        if told.get("disk") in _NO_ROOM and self.order.disk:
            full = f"the input does not fit: {words.disk_full(self.order.disk)}"
            raise NotMoved(full, hint=words.MORE_DISK)
        raise NotMoved(told["failed"], hint="check the names of buckets and objects, and who may use them")

    async def _until_there_is_room(self) -> None:
        """A result is not thrown away because the machine's disk is full: it waits, and says so."""
        said = False
        while self._reach("carry") and not self.own.has_room():
            if not said:
                self.say("WARNING", "the disk of this cluster is nearly full; the outputs wait for room")
            said = True
            await asyncio.sleep(_ROOM_EVERY)

    async def _moved(self, way: str, own: Store | None, mounted: Mapping[str, list[int]]) -> Mapping[str, Any]:
        """Once more if it failed with keys that were replaced meanwhile."""
        while True:
            order = services.up_to_date(self.order)
            told = await self._surely_told(way, plans.plan(order, own, mounted=mounted, patience=self.patience))
            if "failed" not in told or services.up_to_date(self.order).providers == order.providers:
                return told

    @contextlib.asynccontextmanager
    async def _keys(self, way: str, again: bool = False) -> AsyncIterator["asyncio.Task[Store | None]"]:
        """Lends our own store, with keys for this run and this way, which end here."""
        # another for each move: one that is repeated must not lose its keys when those of the former one end
        name = f"{self.order.name} {way} {secrets.token_hex(4)}"
        if self.own.loans is not None and self.order.reach and not again:
            name = self.own.loans.new_name()
        lent = asyncio.create_task(self._lent(name, way), name=f"lend {name}")
        try:
            yield lent
        finally:
            lent.cancel()
            # no wait here: whoever is called off in it would leave the keys, and a script that was let go
            self.own.later(self._end(lent, name), f"end the loan of {name}")

    async def _end(self, lent: "asyncio.Task[Store | None]", name: str) -> None:
        await asyncio.gather(lent, return_exceptions=True)  # whoever waited for it has heard why
        if self.own.loans is not None and self.order.reach:
            await self.own.loans.end(name)

    async def _lent(self, name: str, way: str) -> Store | None:
        reach, address, loans = self._reach(way), self.own.address, self.own.loans
        plain = Store("s3", address.endpoint, address.region, address.verify, vouched=True)
        if not reach:
            return None
        if loans is None:
            return replace(plain, asks=True)
        return plans.with_keys(plain, await self._surely_lent(loans, name, reach))

    async def _surely_lent(self, loans: Loans, name: str, reach: Reach) -> Keys:
        """A store that is away, or refuses the manager, is asked again for as long as the run is wanted: that is the
        cluster's trouble, not the job's."""
        pause, said = _FIRST_PAUSE, ""
        while True:
            try:
                return await loans.lend(name, reach)
            except errors.Temporary as error:
                if error.message != said:
                    self.say("WARNING", f"{error.message}; trying again until it works")
                said = error.message
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _reach(self, way: str) -> Reach:
        """Raises `Forbidden` if the right to it was lost since the run was ordered."""
        whole = self.order.reach
        whole.require_rights()
        return replace(whole, write=frozenset()) if way == "bring" else replace(whole, read=frozenset())

    async def _surely_told(self, way: str, plan: Plan) -> Mapping[str, Any]:
        """Every step may be repeated: a launcher that died on the way is replaced, and one that had no room for another
        process may have it in a moment."""
        pause = _FIRST_PAUSE
        for _ in range(_MOST_LOSSES - 1):
            with contextlib.suppress(SandboxLost):
                return await self._told(way, plan)
            await asyncio.sleep(pause)
            pause *= 4
        return await self._told(way, plan)

    async def _told(self, way: str, plan: Plan) -> Mapping[str, Any]:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with contextlib.ExitStack() as opened:
            opened.callback(ours.close)
            for end in (ours, theirs):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _PACKET)
            with theirs:
                theirs.setblocking(True)
                folders = self.workdir.handles()
                try:
                    tls = [one.verify for one in plan.stores if s3.server_of(one).secure]
                    call_off = await self.movers.stage(theirs, folders, tls)
                finally:
                    for fd in folders:
                        os.close(fd)
            try:
                return await self._talk(_Channel(ours), way, plan)
            except BaseException:
                await call_off()
                raise

    async def _talk(self, channel: "_Channel", way: str, plan: Plan) -> Mapping[str, Any]:
        await channel.send({"way": way}, await asyncio.to_thread(plan.to_json))  # names of many files may be in it
        while True:
            message, fds = await channel.hear()
            match message:
                case {"end": True} if fds:
                    told = _file(fds.pop(0))
                    protocol.close(fds)
                    with told:
                        return await asyncio.to_thread(_read, told)
            protocol.close(fds)  # nothing else brings any: a child that was taken over must not fill our table of them
            match message:
                case {"say": [str(level), str(text)]}:
                    self.say(level, text)
                case {"dial": int(number)} if 0 <= number < len(plan.stores):
                    await self._dialled(channel, plan.stores[number])
                case {"sign": [int(number), *request]} if 0 <= number < len(plan.stores):
                    await channel.send({"headers": self._signed(plan.stores[number], *request)})
                case _:
                    raise SandboxLost("the child that moves files said something unexpected")

    async def _dialled(self, channel: "_Channel", store: Store) -> None:
        server = s3.server_of(store)
        try:
            connected = await self.dial(server.host, server.port, store.vouched, self.order.payer)
        except errors.HansaError as error:
            await channel.send({"error": error.message, "temporary": isinstance(error, errors.Temporary)})
            return
        with connected:
            connected.setblocking(True)  # the mode belongs to the connection, and so to whoever gets it
            await channel.send({}, connected)

    def _signed(
        self, store: Store, method: str, bucket: str, key: str, query: Mapping[str, str], payload: str
    ) -> Mapping[str, str] | None:
        if not (store.asks and _allowed(self.order.reach, method, bucket, key, query)):
            return None
        self.order.reach.require_rights()  # no keys end when a right does: each request is looked at
        return s3.signed(plans.with_keys(store, self.own.root), method, bucket, key, query, payload)


def _allowed(reach: Reach, method: str, bucket: str, key: str, query: Mapping[str, str]) -> bool:
    """May a run with this reach make this request? Only what moving files takes is known here."""
    parts = query.keys() <= {"uploads", "uploadId", "partNumber"}
    match method:
        case "GET" if key and not query:
            return reach.reads(bucket, key)
        case "GET" if not key and query.keys() <= {"list-type", "prefix", "continuation-token"}:
            return reach.lists(bucket, query.get("prefix", ""))
        case "PUT" | "POST" | "DELETE" if key and parts and (query or method == "PUT"):
            return reach.writes(bucket, key)
    return False


class _Channel:
    """The manager's end of the connection to one child."""

    def __init__(self, connected: socket.socket) -> None:
        connected.setblocking(False)
        self._socket = connected

    async def send(self, message: protocol.Message, attached: bytes | socket.socket | None = None) -> None:
        """Bytes travel as a file without a name."""
        packet = protocol.encode(message)
        if isinstance(attached, bytes):
            fd = os.memfd_create("order", os.MFD_CLOEXEC)
            try:
                _write_all(fd, attached)
                self._send(packet, [fd])
            finally:
                os.close(fd)
        else:
            self._send(packet, [attached.fileno()] if attached is not None else [])

    def _send(self, packet: bytes, fds: Sequence[int]) -> None:
        try:
            protocol.send(self._socket, packet, fds)  # it asks and waits for one answer: there is always room
        except OSError as error:
            raise SandboxLost("the child that moves files is gone") from error

    async def hear(self) -> tuple[protocol.Message, list[int]]:
        while True:
            try:
                message, fds = protocol.receive(self._socket)
            except BlockingIOError:
                await self._readable()
                continue
            except (ValueError, RecursionError) as error:
                raise SandboxLost("the child that moves files said something unexpected") from error
            if message is None:
                raise SandboxLost("the child that moves files is gone")
            return message, fds

    async def _readable(self) -> None:
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()
        loop.add_reader(self._socket, ready.set)
        try:
            await ready.wait()
        finally:
            loop.remove_reader(self._socket)


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _file(fd: int) -> BinaryIO:
    return open(fd, "rb")


def _read(file: BinaryIO) -> Mapping[str, Any]:
    file.seek(0)
    try:
        told: dict[str, Any] = json.loads(file.read(_LARGEST_TOLD))
    except ValueError as error:
        raise SandboxLost("the child that moves files said something unexpected") from error
    return told

"""Connections into exposed services: their ports live in a network of their own, so the engine dials for us."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterable, AsyncIterator
from weakref import WeakValueDictionary

from hansa.entrypoints.http.exposed.answers import Answer, NoAnswer
from hansa.entrypoints.http.exposed.limits import CONNECTIONS, ServiceCrowded
from hansa.services import ExposedHost

# Seconds. Kept for longer, a connection would bring every call to the version it was made to, until that one ends in
# the middle of a call. This is less than a version gets to end the calls under way where the new one runs beside it.
_USED_AGAIN_FOR = 0.5
_FREE = 10.0  # seconds until one of a service's connections must be free
_TAKES = 60.0  # seconds in which a process must take something of a body
_ANSWERS = 300.0  # seconds until the head of the answer is there, and then at most between two parts of its body
_READ = 64 * 1024
# Pieces cost more than their bytes. So a read is cut in slices until there were many, and whoever sends so many waits:
# answers of one service together get no more than 10,000 pieces a second through, others of it and of others go on.
_SLICE = 4 * 1024
_MANY = 64
_EACH = 0.0001  # seconds


class Connection:
    """One connection into a service, for one call at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, turn: asyncio.Lock) -> None:
        self._reader = reader
        self._writer = writer
        self._turn = turn
        self._made = time.monotonic()
        self._read = memoryview(b"")  # and not looked at yet
        self._pieces = 0  # of the body, in what was looked at last
        self._answer: Answer | None = None

    @property
    def is_good(self) -> bool:
        """For another call."""
        done = self._answer is not None and self._answer.is_complete and not self._answer.is_last
        young = time.monotonic() - self._made < _USED_AGAIN_FOR
        return done and young and not self._read and not self._reader.at_eof()

    def drop(self) -> None:
        self._writer.transport.abort()

    async def send(self, request: AsyncIterable[bytes]) -> None:
        """A process that does not want all of it may have answered already."""
        self._answer = None
        with contextlib.suppress(OSError):
            async for part in request:
                try:
                    async with asyncio.timeout(_TAKES):
                        self._writer.write(part)
                        await self._writer.drain()
                except TimeoutError:
                    raise NoAnswer(f"it took nothing for {_TAKES:g} seconds") from None

    async def head(self, method: str) -> Answer:
        """The answer as far as its headers; within a time in all, whatever announces it."""
        answer = self._answer = Answer(method)
        try:
            async with asyncio.timeout(_ANSWERS):
                while not answer.status:
                    await self._read_on(answer)
        except TimeoutError:
            raise NoAnswer(f"nothing for {_ANSWERS:g} seconds") from None
        return answer

    async def body(self, answer: Answer) -> AsyncIterator[bytes]:
        """What comes together goes on as one, and the others have their turn before the next."""
        while True:
            if part := answer.take():
                yield part
            if answer.is_complete:
                return
            await self._pause()
            try:
                async with asyncio.timeout(_ANSWERS):
                    await self._read_on(answer)
            except TimeoutError:
                raise NoAnswer(f"nothing more for {_ANSWERS:g} seconds") from None

    async def _read_on(self, answer: Answer) -> None:
        if not self._read:
            self._read = memoryview(await self._next())
            if not self._read:
                answer.end()
        self._pieces = 0
        while self._read and self._pieces <= _MANY:
            piece, self._read = self._read[:_SLICE], self._read[_SLICE:]
            self._pieces += answer.feed(piece)

    async def _next(self) -> bytes:
        try:
            return await self._reader.read(_READ)
        except OSError as error:
            raise NoAnswer(f"the connection broke: {error.strerror or type(error).__name__}") from None

    async def _pause(self) -> None:
        if self._pieces <= _MANY:
            await asyncio.sleep(0)
            return
        async with self._turn:
            await asyncio.sleep(self._pieces * _EACH)


class Pool:
    """The connections into one service."""

    def __init__(self, host: ExposedHost, service: str) -> None:
        self._host = host
        self._service = service
        self._places = asyncio.Semaphore(CONNECTIONS)
        self._kept: list[Connection] = []
        self._turn = asyncio.Lock()

    async def take(self) -> Connection:
        """To be given back, whatever becomes of it."""
        try:
            async with asyncio.timeout(_FREE):
                await self._places.acquire()
        except TimeoutError:
            raise ServiceCrowded(f"service {self._service} has no connection free") from None
        try:
            while self._kept:
                connection = self._kept.pop()
                if connection.is_good:
                    return connection
                connection.drop()
            sock = await self._host.connect(self._service)
            return Connection(*await asyncio.open_connection(sock=sock), self._turn)
        except BaseException:
            self._places.release()
            raise

    def give_back(self, connection: Connection) -> None:
        self._places.release()
        if not connection.is_good:
            connection.drop()
            return
        self._kept.append(connection)
        asyncio.get_running_loop().call_later(_USED_AGAIN_FOR, self._expire, connection)

    def close(self) -> None:
        for connection in self._kept:
            connection.drop()
        self._kept.clear()

    def _expire(self, connection: Connection) -> None:
        if connection in self._kept:
            self._kept.remove(connection)
            connection.drop()


class ExposedPools:
    """One pool of connections for each exposed service, for as long as somebody calls it."""

    def __init__(self, host: ExposedHost) -> None:
        self._host = host
        # A pool lives with its callers, and with what it keeps for the next (`_expire`): services come and go.
        self._pools: WeakValueDictionary[str, Pool] = WeakValueDictionary()

    def __len__(self) -> int:
        return len(self._pools)

    def of(self, service: str) -> Pool:
        pool = self._pools.get(service)
        if pool is None:
            pool = self._pools[service] = Pool(self._host, service)
        return pool

    async def close(self) -> None:
        for pool in list(self._pools.values()):
            pool.close()
        self._pools.clear()
        await asyncio.sleep(0)  # dropped is not closed before the loop's next turn

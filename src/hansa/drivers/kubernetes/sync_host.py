"""How is `/run` answered in Kubernetes? By a worker pod that stands ready, else by one made for the call and kept for
the next. The `SyncHost` port.

A call to a worker that is there costs the API server nothing. `max_scale` bounds how many calls of a service run at
once, beyond it callers take turns; workers that nobody called for a while go, down to `min_scale`. A worker counts for
who calls it, and while it stands ready for the service's owner.
"""

import asyncio
import secrets
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

import httpx
import msgspec
import structlog
from lightkube.resources.core_v1 import Pod, Secret

from hansa import services
from hansa.drivers.kubernetes import labels, pod_status, worker_manifest
from hansa.drivers.kubernetes.engine import Engine
from hansa.drivers.kubernetes.errors import ApiUnreachable
from hansa.drivers.kubernetes.stager import calls
from hansa.drivers.runs import environment, plans, reply, words
from hansa.kernel.errors import HansaError
from hansa.services import events

_log = structlog.get_logger("hansa.kubernetes")
_IDLE = 60.0  # seconds after which a worker that nobody calls goes
_LOOK_EVERY = 5.0
_TRY_EVERY = 0.2
_LONGEST_CALL = 86_400.0
_LARGEST_ANSWER, _PIECE = 2 * reply.LARGEST, 64 * 1024  # bytes
_BEYOND = 5.0  # seconds we wait for an answer longer than the script may take


@dataclass(slots=True)
class _Worker:
    name: str
    namespace: str
    digest: str
    token: str = field(repr=False)
    owner: str  # of its service
    idle_since: float = 0.0


@dataclass(slots=True)
class _Pool:
    wanted: services.RunOrder | None = None
    idle: deque[_Worker] = field(default_factory=deque)
    line: services.CallLine = field(default_factory=services.CallLine)
    warming: int = 0
    returned: asyncio.Event = field(default_factory=asyncio.Event)  # a worker came back

    @property
    def least(self) -> int:
        return self.wanted.service.synchronous.min_scale if self.wanted is not None else 0


class KubernetesSyncHost:
    def __init__(self, engine: Engine, *, idle: float = _IDLE) -> None:
        self._engine = engine
        self._api = engine.api
        self._board = engine.board
        self._admission = engine.admission
        self._idle = idle
        self._pools: dict[str, _Pool] = {}
        self._left: list[tuple[str, str]] | None = None  # of an earlier life of ours, with their namespaces
        self._ours: set[str] = set()  # names of all workers that we made and did not throw away
        self._tasks: set[asyncio.Task[None]] = set()
        self._http = httpx.AsyncClient(trust_env=False, timeout=_LONGEST_CALL)  # each call brings its own limit, too
        self._admission.on_want(self._give_up)
        self._stop_listening = self._admission.on_release(self._look_again)
        self._start(self._tidy(), "tidy workers")

    async def close(self) -> None:
        """Workers go with us: whoever comes next makes its own."""
        self._stop_listening()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for pool in self._pools.values():
            while pool.idle:
                await self._throw_away(pool.idle.pop())
        await self._http.aclose()

    async def invoke(self, order: services.RunOrder) -> services.Reply:
        end = time.monotonic() + order.seconds
        pool = self._pools.setdefault(order.service.name, _Pool())
        async with pool.line.place(order, self._admission, end) as settle:
            worker = await self._worker(pool, order, end, settle)
            spoilt = True
            try:
                whole = await self._engine.with_keys(order)
                answer = await self._ask(worker, whole, end - time.monotonic())
                spoilt = answer.spoilt
                return services.Reply(answer.body, answer.exit_code, answer.reason)
            except (httpx.HTTPError, TimeoutError, msgspec.DecodeError) as error:
                reason = f"the worker did not answer: {type(error).__name__}"
                return services.Reply(b"", None, words.time_limit(order.seconds) if _is_late(end) else reason)
            finally:
                self._start(self._engine.end_keys(order.name), f"end keys of {order.name}")
                if spoilt:
                    self._start(self._throw_away(worker), f"clear {worker.name}")
                else:
                    self._keep(pool, worker, order)

    async def settle(self, wanted: Mapping[str, services.RunOrder]) -> None:
        """Returns before the workers are warm."""
        for service in {*self._pools, *wanted}:
            pool = self._pools.setdefault(service, _Pool())
            pool.wanted = wanted.get(service)
            self._drop_strangers(pool)
        for service, pool in list(self._pools.items()):
            self._warm(service, pool)

    async def _worker(self, pool: _Pool, order: services.RunOrder, end: float, settle: Callable[[], None]) -> _Worker:
        """One that stands ready, or a new one; or one that becomes free while the new one is still being made. Nothing
        is awaited once there is one: a caller that goes then would leave it to nobody."""
        mark = worker_manifest.digest(order, self._engine.shape)
        if (found := self._ready(pool, mark, order.payer)) is not None:
            settle()
            return found
        making = asyncio.create_task(
            self._made(order, mark, end, settle), name=f"make a worker of {order.service.name}"
        )
        is_ours = False
        try:
            while not making.done():
                await _either(making, pool.returned)
                if not making.done() and (found := self._ready(pool, mark, order.payer)) is not None:
                    settle()
                    return found
            is_ours = True
            return making.result()
        finally:
            if not is_ours:
                making.cancel()
                self._start(self._unmade(making), f"clear a new worker of {order.service.name}")

    async def _unmade(self, making: "asyncio.Task[_Worker]") -> None:
        """Its caller went, or has another one; it may have been whole by then."""
        await asyncio.wait({making})
        if not making.cancelled() and making.exception() is None:
            await self._throw_away(making.result())

    def _ready(self, pool: _Pool, mark: str, payer: str) -> _Worker | None:
        for worker in [one for one in pool.idle if one.digest == mark]:
            pod = self._board.worker(worker.name)
            pool.idle.remove(worker)  # first: what is said to the admission may have idle ones given up, in that moment
            if pod is not None and pod_status.is_ready(pod):
                if self._admission.hand_over(worker.name, payer):
                    return worker
                pool.idle.appendleft(worker)
                return None
            self._start(self._throw_away(worker), f"clear {worker.name}")
        return None

    async def _made(self, order: services.RunOrder, mark: str, end: float, settle: Callable[[], None]) -> _Worker:
        """A new one, as soon as the share of who calls allows it."""
        name, needs = _new_name(order), services.needs_of(order, order.payer)
        if not await self._admission.wait_for(name, needs, end - time.monotonic(), room=False):
            raise services.no_worker(order, self._admission.over_share(needs) or "your quota is used up")
        settle()
        return await self._stood_up(order, name, mark, end)

    async def _stood_up(self, order: services.RunOrder, name: str, mark: str, end: float) -> _Worker:
        """What counts under `name` counts no more if the worker does not stand."""
        namespace = self._engine.namespace_of(order)
        worker = _Worker(name, namespace, mark, secrets.token_urlsafe(24), order.service.owner)
        self._ours.add(name)
        try:
            async with asyncio.timeout(end - time.monotonic()), self._board.watching(name) as news:
                await self._engine.prepare(order)
                asked = worker_manifest.secret(order, name, namespace, self._engine.shape, worker.token)
                owner = await self._api.create(asked)
                if owner is None:
                    raise ApiUnreachable(f"there is a Secret {name} already")
                await self._create(worker_manifest.pod(order, name, namespace, self._engine.shape, owner))
                while (pod := self._board.worker(name)) is None or not pod_status.is_ready(pod):
                    news.clear()
                    await news.wait()
        except TimeoutError:
            pod = self._board.worker(name)
            why = pod_status.waits(pod) if pod is not None else ""
            self._start(self._throw_away(worker), f"clear {name}")
            raise services.no_worker(order, why or "none became ready in time") from None
        except BaseException:
            self._start(self._throw_away(worker), f"clear {name}")
            raise
        return worker

    async def _create(self, pod: Pod) -> None:
        """Until the API server takes it, or the caller's time is over."""
        while True:
            try:
                await self._api.create(pod)
                return
            except ApiUnreachable as error:
                _log.info("a worker waits for the API server", reason=error.message)
                await asyncio.sleep(_TRY_EVERY)

    def _keep(self, pool: _Pool, worker: _Worker, order: services.RunOrder) -> None:
        if not self._admission.hand_over(worker.name, order.service.owner):
            self._start(self._throw_away(worker), f"clear {worker.name}")  # it may not stand ready for its owner
            return
        worker.idle_since = time.monotonic()
        pool.idle.append(worker)
        pool.returned.set()

    async def _ask(self, worker: _Worker, order: services.RunOrder, seconds: float) -> calls.Answer:
        pod = self._board.worker(worker.name)
        assert pod is not None
        given = events.interpret(order.event)
        said = calls.Call(
            plan=plans.plan(order, None).to_json().decode(),
            input_name=environment.input_name(given),
            input=given.data if isinstance(given, events.BytesInput) else None,
            variables=worker_manifest.variables(order, self._engine.shape),
            seconds=max(seconds, 0.0),
        )
        async with asyncio.timeout(seconds + _BEYOND):
            address = f"http://{pod.status.podIP}:{calls.PORT}/"
            proof = {"Authorization": f"Bearer {worker.token}"}
            content = msgspec.msgpack.encode(said)
            async with self._http.stream("POST", address, content=content, headers=proof) as answer:
                answer.raise_for_status()
                found = msgspec.msgpack.decode(await _whole(answer, order.weigh), type=calls.Answer)
        late = found.exit_code is None and found.reason == words.time_limit(said.seconds)
        return msgspec.structs.replace(found, reason=words.time_limit(order.seconds)) if late else found

    async def _throw_away(self, worker: _Worker) -> None:
        self._ours.discard(worker.name)
        try:
            await self._api.delete(Secret, worker.name, worker.namespace)
        finally:
            self._admission.release(worker.name)

    async def _clear_others(self) -> None:
        """Workers of a manager that died, whose tokens nobody knows, and those that could not be thrown away before."""
        if self._left is None:
            found = await self._engine.left(labels.WORKER)
            self._left = [(name, namespace) for name, places in found.items() for namespace in places]
        for name, namespace in {*self._board.workers(), *self._left}:
            if name not in self._ours:
                await self._api.delete(Secret, name, namespace)
        self._left = []

    # Keeping some warm, and letting others go.

    def _drop_strangers(self, pool: _Pool) -> None:
        """Workers of another definition than the one that is wanted."""
        mark = worker_manifest.digest(pool.wanted, self._engine.shape) if pool.wanted is not None else ""
        for worker in [one for one in pool.idle if one.digest != mark]:
            pool.idle.remove(worker)
            self._start(self._throw_away(worker), f"clear {worker.name}")

    def _warm(self, service: str, pool: _Pool) -> None:
        while pool.wanted is not None and len(pool.idle) + pool.line.busy + pool.warming < pool.least:
            pool.warming += 1
            self._start(self._warmed(service, pool, pool.wanted), f"warm {service}")

    async def _warmed(self, service: str, pool: _Pool, order: services.RunOrder) -> None:
        try:
            name, mark = _new_name(order), worker_manifest.digest(order, self._engine.shape)
            if not self._admission.try_hold(
                name, services.needs_of(order, order.service.owner), lasting=True, room=False
            ):
                return  # looked at again soon
            worker = await self._stood_up(order, name, mark, time.monotonic() + 120)
            self._keep(pool, worker, order)
            self._drop_strangers(pool)
        except HansaError as error:
            _log.warning("a warm worker did not start", service=service, reason=error.message)
        finally:
            pool.warming -= 1

    def _give_up(self, owner: str) -> None:
        """Somebody lacks what idle workers of theirs hold: those beyond `min_scale` go."""
        for pool in self._pools.values():
            spare = max(0, len(pool.idle) + pool.line.busy - pool.least)
            for worker in [one for one in pool.idle if one.owner == owner][:spare]:
                pool.idle.remove(worker)
                self._start(self._throw_away(worker), f"clear {worker.name}")

    def _look_again(self) -> None:
        """Somebody's share may allow more now."""
        for pool in self._pools.values():
            pool.line.look_again()

    async def _tidy(self) -> None:
        while True:
            await asyncio.sleep(min(_LOOK_EVERY, self._idle))
            for service, pool in list(self._pools.items()):
                long_ago = time.monotonic() - self._idle
                while len(pool.idle) + pool.line.busy > pool.least and pool.idle and pool.idle[0].idle_since < long_ago:
                    worker = pool.idle.popleft()
                    self._start(self._throw_away(worker), f"clear {worker.name}")
                self._warm(service, pool)
            await _without_trouble(self._clear_others())

    def _start(self, work: Awaitable[None], name: str) -> None:
        task = asyncio.create_task(_without_trouble(work), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _without_trouble(work: Awaitable[None]) -> None:
    try:
        await work
    except HansaError as error:
        _log.warning("a worker was not cared for", reason=error.message)


async def _whole(answer: httpx.Response, weigh: Callable[[int], None] | None) -> bytes:
    """What the worker says, as far as there is room for it: what a script left is in it."""
    scales, body = reply.Scales(weigh), bytearray()
    async for chunk in answer.aiter_raw(_PIECE):
        if len(body) + len(chunk) > _LARGEST_ANSWER:
            raise httpx.DecodingError("the worker's answer is too long")
        scales.add(len(chunk))
        body += chunk
    return bytes(body)


async def _either(task: "asyncio.Task[_Worker]", returned: asyncio.Event) -> None:
    """Until the task is done, or a worker came back."""
    returned.clear()
    waiting = asyncio.ensure_future(returned.wait())
    try:
        await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()


def _new_name(order: services.RunOrder) -> str:
    return f"{order.service.name}-run-{secrets.token_hex(6)}"


def _is_late(end: float) -> bool:
    return time.monotonic() >= end

"""The launcher's loop: take orders from the manager, start jobs, keep their time, report their ends.

Started by `sandbox.py` as `launcher.main.main()` with two arguments: the number of the socket to the manager
and a `Config` as JSON. When the manager is gone, everything it started goes too.
"""

import contextlib
import importlib
import itertools
import os
import selectors
import signal
import socket
import sys
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from . import cgroups, child, dialling, levels, linux, locks, processes, protocol, stage
from .gauges import Gauges
from .job import Ended, Job
from .spare import Spare

_SWEEP_SECONDS = 3.0
_MOVING = "stager.program"
_SPARE_DELAY = 0.003  # the job just started goes first
_FLUSH_AGAIN = 0.05
_SPARE_AGAIN = 1.0  # a machine may have no room for a process, or for its descriptors, for a while


class Launcher:
    """The jobs of one manager."""

    def __init__(
        self, channel: socket.socket, setting: child.Setting, tree: cgroups.Tree | None, uids: range, *, jobs: bool
    ) -> None:
        self._channel = channel
        self._setting = setting
        self._tree = tree
        self._uids = deque(uids)  # in a circle: a uid is used again as late as possible
        self._jobs: dict[str, Job] = {}
        self._gates: dict[str, int] = {}
        self._births: dict[str, int] = {}  # pipes that tell whether a job got as far as exec
        self._failed: set[str] = set()  # it did not: its end is not news
        self._outbox: deque[tuple[bytes, list[int]]] = deque()
        self._flush_due = float("inf")
        self._manager_gone = False
        self._movers: dict[int, int] = {}  # calls of children that move files, by their pids
        self._moving: Any = None
        self._spares = itertools.count()
        self._spare: Spare | None = None
        self._spare_due = 0.0 if jobs else float("inf")
        self._events = selectors.DefaultSelector()
        self._dials = dialling.Dials(self._events, self._report, root=setting.root)
        self._gauges = Gauges(setting, self._events, self._too_much)

    def serve(self) -> None:
        """Until the manager is gone and every job has ended."""
        child_ended, wakeup = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._channel.setblocking(False)
        self._watch(self._channel, self._hear)
        self._watch(child_ended, lambda: os.read(child_ended, 4096))
        # a fork of the manager may hold the socket open beyond its death; its pid cannot be held
        manager = os.pidfd_open(os.getppid())
        self._watch(manager, lambda: self._end_all(manager))
        while self._jobs or not self._manager_gone:
            for key, _ in self._events.select(self._pause()):
                key.data()
            self._reap()
            self._tick()
            self._flush()
            self._keep_spare()
        if self._spare is not None:
            self._spare.discard()
        self._gauges.close()

    def _keep_spare(self) -> None:
        """And whatever else can be done ahead, while nobody waits."""
        if self._spare is None and not self._manager_gone and time.monotonic() >= self._spare_due:
            try:
                self._spare = self._new_spare()
            except OSError:
                self._spare_due = time.monotonic() + _SPARE_AGAIN
                return
            self._spare_due = float("inf")
            with contextlib.suppress(OSError, ImportError):
                self._program()

    def _new_spare(self) -> Spare:
        return Spare(self._setting, self._tree, next(self._spares))

    def _pause(self) -> float | None:
        due = min(
            *(job.due for job in self._jobs.values()),
            *(self._dials.due, self._gauges.due, self._spare_due, self._flush_due),
        )
        return None if due == float("inf") else max(0.0, due - time.monotonic())

    def _watch(self, source: int | socket.socket, react: Callable[[], object]) -> None:
        self._events.register(source, selectors.EVENT_READ, react)

    # what the manager asks

    def _hear(self) -> None:
        try:
            message, fds = protocol.receive(self._channel)
        except BlockingIOError:
            return
        try:
            if message is None:
                self._end_all(self._channel)
            else:
                self._obey(message, fds)
        finally:
            for fd in fds:
                os.close(fd)

    def _obey(self, message: protocol.Message, fds: list[int]) -> None:
        if message["op"] == "start":
            order = protocol.Order(**message["order"])
            try:
                if not fds:
                    raise ValueError("there is no room for its descriptors")
                self._start(order, fds[0], fds[1:])
            except (OSError, ValueError) as error:
                self._report({"event": "failed", "id": order.id, "error": str(error)})
            return
        if message["op"] == "stage":
            with contextlib.suppress(OSError, ImportError):
                self._stage(message, fds)
            return
        if message["op"] == "unstage":
            for pid in [pid for pid, call in self._movers.items() if call == message["call"]]:
                processes.signal_process(pid)
            return
        job = self._jobs.get(message["id"])
        match message["op"]:
            case "dial":
                self._dials.begin(message, job)
            case "release" if job is not None and job.id in self._gates:
                job.release()
                gate = self._gates.pop(job.id)
                with contextlib.suppress(BrokenPipeError):  # it died a moment ago: its end is told as every other
                    os.write(gate, b"+")
                os.close(gate)
            case "stop" if job is not None:
                job.stop(message["grace"])
            case "kill" if job is not None:
                job.kill("killed")

    def _stage(self, message: protocol.Message, fds: list[int]) -> None:
        """The manager hears of the child's end by the end of their connection, also if it never began."""
        if not fds:
            return  # there was no room for them
        program = self._program()
        for verify in message["tls"]:
            program.prepare(verify=verify)
        with socket.socket(fileno=os.dup(fds[0])) as connected:
            pid = os.fork()
            if pid == 0:
                stage.run(self._setting, program.run, connected, fds[1:])
        self._movers[pid] = message["call"]

    def _program(self) -> Any:
        """What moves files: a package of its own beside this one, for pods use it too."""
        if self._moving is None:
            self._moving = importlib.import_module(_MOVING)
        return self._moving

    def _start(self, order: protocol.Order, output: int, disks: list[int]) -> None:
        if order.id in self._jobs:
            raise ValueError("a job of this id runs already")
        if not self._uids:
            raise ValueError("as many jobs run as there are uids for them")
        spare, self._spare = self._spare or self._new_spare(), None
        self._spare_due = time.monotonic() + _SPARE_DELAY
        uid, pipes = self._uids.popleft(), list[int]()
        try:
            pipes += os.pipe2(os.O_CLOEXEC)
            pipes += os.pipe2(os.O_CLOEXEC) if order.hold else ()
            failure, failing, *gates = pipes
            self._watch(failure, lambda: self._began(order.id))
            gate = (gates[0], gates[1]) if gates else None
            fds = child.Descriptors(output=output, failure=failing, gate=gate, disks=tuple(disks))
            job = Job(self._setting, order, spare, uid, fds)
        except OSError:
            spare.discard()
            self._uids.append(uid)
            for fd in pipes:
                with contextlib.suppress(KeyError):
                    self._events.unregister(fd)
                os.close(fd)
            raise
        os.close(failing)
        self._jobs[job.id] = job
        most_memory = 0 if job.by_cgroup else max(order.memory, cgroups.LEAST_MEMORY)
        self._gauges.begin(job.id, job.pid, order.watched, most_memory)
        if gate is not None:
            os.close(gate[0])
            self._gates[job.id] = gate[1]
        self._births[job.id] = failure

    def _began(self, id: str) -> None:
        """The child has closed its pipe by exec, or said why it could not get there."""
        failure = self._births.pop(id)
        reason = os.read(failure, 4096).decode(errors="replace")
        self._events.unregister(failure)
        os.close(failure)
        if reason:
            self._failed.add(id)
            self._report({"event": "failed", "id": id, "error": reason})
        else:
            self._report({"event": "started", "id": id})

    def _end_all(self, source: int | socket.socket) -> None:
        with contextlib.suppress(KeyError):
            self._events.unregister(source)
        self._manager_gone = True
        for pid in self._movers:
            processes.signal_process(pid)
        for job in self._jobs.values():
            job.kill("killed")

    def _too_much(self, id: str, reason: protocol.Reason) -> None:
        """It holds more of the disk, or of memory, than it may."""
        if id in self._jobs:
            self._jobs[id].kill(reason)
            self._gauges.end(id)  # once is enough: `tick` repeats the kill

    # what becomes of the jobs

    def _reap(self) -> None:
        by_pid = {job.pid: job for job in self._jobs.values()}
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)  # orphans too: we are their reaper
                if not pid:
                    return
                self._movers.pop(pid, None)
                self._gauges.ended(pid)
                if pid in by_pid:
                    by_pid[pid].main_process_ended(status)
                elif self._spare is not None and pid == self._spare.pid:  # somebody ended it
                    self._spare.discard()
                    self._spare, self._spare_due = None, time.monotonic() + _SPARE_DELAY

    def _tick(self) -> None:
        now = time.monotonic()
        for job in [job for job in self._jobs.values() if job.due <= now]:
            ended = job.tick()
            if ended is not None:
                self._finish(job, ended)
        self._dials.tick()
        self._gauges.tick()

    def _finish(self, job: Job, ended: Ended) -> None:
        if job.id in self._births:  # so short a life that its beginning is still unread
            self._began(job.id)
        del self._jobs[job.id]
        self._gauges.end(job.id)
        if job.id in self._gates:
            os.close(self._gates.pop(job.id))
        if ended.clean:
            self._uids.append(job.uid)
        if job.id in self._failed:
            self._failed.remove(job.id)
            return
        report = {"code": ended.code, "reason": ended.reason, "seconds": ended.seconds}
        self._report({"event": "ended", "id": job.id, **report, "cpu_seconds": ended.cpu_seconds})

    # what the manager hears: a busy one must not hold up the clocks of the jobs

    def _report(self, message: protocol.Message, fds: list[int] | None = None) -> None:
        self._outbox.append((protocol.encode(message), fds or []))
        self._flush()

    def _flush(self) -> None:
        self._flush_due = float("inf")
        while self._outbox:
            packet, fds = self._outbox[0]
            try:
                protocol.send(self._channel, packet, fds)
            except BlockingIOError:
                self._expect_room(wanted=True)
                return
            except ConnectionError:  # the manager is gone; its pidfd or the end of the channel says so too
                pass
            except OSError:  # no memory for it just now: the next turn of the loop tries again
                self._flush_due = time.monotonic() + _FLUSH_AGAIN
                return
            self._outbox.popleft()
            for fd in fds:
                os.close(fd)
        self._expect_room(wanted=False)

    def _expect_room(self, *, wanted: bool) -> None:
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if wanted else 0)
        with contextlib.suppress(KeyError):
            key = self._events.get_key(self._channel)
            if key.events != events:
                self._events.modify(self._channel, events, key.data)


def sweep(tree: cgroups.Tree | None, uids: range, *, root: bool) -> None:
    """End what a launcher that died left behind."""
    patience = time.monotonic() + _SWEEP_SECONDS
    for name in tree.leftovers() if tree is not None else ():
        assert tree is not None
        group = cgroups.Group(tree, name)
        while not group.remove() and time.monotonic() < patience:
            with contextlib.suppress(FileNotFoundError):
                group.kill()
            time.sleep(0.002)
    if root:
        processes.kill_uids(uids)


def main() -> None:
    channel = socket.socket(fileno=int(sys.argv[1]))
    channel.set_inheritable(False)
    config = protocol.Config.from_json(sys.argv[2])
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # they are for the manager, which then ends us in order
    linux.adopt_orphans()
    if config.ceiling.user is not None:
        importlib.import_module(_MOVING)  # that user may not be able to read it
        linux.become(config.ceiling.user, config.ceiling.user)
    root = os.geteuid() == 0
    uids = range(config.uid_base, config.uid_base + protocol.UIDS_PER_INSTANCE)
    try:
        held = locks.take(config, root=root) if config.jobs else None
    except (locks.Refused, OSError) as refusal:
        hint = getattr(refusal, "hint", "the directory must exist and be writable for the manager")
        protocol.send(channel, protocol.encode({"event": "refused", "reason": str(refusal), "hint": hint}))
        return
    grouped = config.ceiling.cgroups and (config.jobs or config.probe)
    tree = cgroups.find(f"hansa-{config.instance}-{config.uid_base}") if grouped else None
    try:
        if held is not None:
            sweep(tree, uids, root=root)
        setting = levels.find(config.ceiling, tree, uids[0])
        protocol.send(channel, protocol.encode({"event": "ready", "level": protocol.fields(setting.level)}))
        if not config.probe:
            Launcher(channel, setting, tree, uids, jobs=config.jobs).serve()
    finally:
        if tree is not None:
            tree.remove()

"""The stager's two ways: `in` brings what the script needs and ends, `out` waits for its end and carries what it left.

`out` is a sidecar: Kubernetes ends it once the script has ended, with enough time to carry. It goes to work as soon as
the script's end is written down, if it is allowed to, and tells the result as it ends.
"""

import contextlib
import dataclasses
import threading
from pathlib import Path

import msgspec

from hansa.drivers.kubernetes.stager import folders, paper, script_files
from hansa.drivers.kubernetes.stager.paper import Paper, Told
from hansa.drivers.runs import log_levels
from hansa.drivers.runs.stager.errors import Refused, Trouble
from hansa.drivers.runs.stager.plan import Plan

_LOOK_EVERY = 0.1  # a file in a shared folder: nothing tells of it across containers
_SEEN_WITHIN = 5.0  # seconds in which Kubernetes has surely looked at its containers
_ASK_EVERY = 0.5
_LONGEST = 2000  # characters of a last word; Kubernetes keeps 4096 bytes
_TROUBLE = (Refused, Trouble, OSError)


class Stager:
    def __init__(self, told: Paper, over: threading.Event) -> None:
        """`over` is set when Kubernetes wants it to end."""
        self._paper = told
        self._over = over

    def say(self, level: str, text: str) -> None:
        if log_levels.lets_through(self._paper.log_level, level):
            print(f"hansa {level}: {text[:4096]}", flush=True)

    def bring(self) -> Told:
        try:
            (folders.JOB / "input").mkdir(exist_ok=True)
            if self._paper.input_url:
                folders.fetch_input(self._paper.input_name, self._paper.input_url)
            plan = self._paper.steps
            if plan.brings:
                with folders.moving(plan, self.say) as mover:
                    brought = mover.bring()
                if plan.mount is not None:
                    Path(paper.MOUNTED).write_bytes(msgspec.json.encode(brought))
        except _TROUBLE as error:
            self.say("ERROR", f"the script was not started: {error}")
            return Told(error=f"the script was not started: {error}"[:_LONGEST])
        return Told()

    def carry(self) -> Told:
        try:
            code = self._end()
        except Refused as error:
            self.say("ERROR", f"outputs are not stored: {error}")
            return Told(error=f"outputs are not stored: {error}")
        if code != 0:
            if not folders.has_output():
                return Told()
            self.say("WARNING", "outputs of a failed script are not stored")
            return Told(left=True)
        if not self._allowed():
            self.say("WARNING", "another run of this job was given precedence; these outputs are thrown away")
            return Told(thrown_away=True)
        try:
            plan = dataclasses.replace(self._plan(), mounted=_mounted())
            with folders.moving(plan, self.say) as mover:
                count = mover.carry()
        except _TROUBLE as error:
            self.say("ERROR", f"an output could not be stored: {error}")
            return Told(error=f"an output could not be stored: {error}"[:_LONGEST])
        self.say("DEBUG", f"{count} outputs stored")
        return Told(stored=count)

    def _end(self) -> int | None:
        """The script's exit code, or None if it was ended before it could say."""
        while True:
            last = self._over.is_set()  # looked at first: what was written before is seen
            code = script_files.exit_code(paper.END)
            if code is not None or last:
                return code
            self._over.wait(_LOOK_EVERY)

    def _allowed(self) -> bool:
        """Decided by the manager, once; whoever waits in vain is ended by the pod's own limit."""
        if not self._paper.gate_url:
            return True
        pause = threading.Event()  # not `over`: it may be set long before the word is given
        while True:
            with contextlib.suppress(*_TROUBLE):
                if (said := folders.word(self._paper.gate_url)) is not None:
                    return said == paper.YES
            pause.wait(_ASK_EVERY)

    def _plan(self) -> Plan:
        """With the keys of now, which were put there before the word was given."""
        if not self._paper.plan_url:
            return self._paper.steps
        pause = threading.Event()
        while True:
            with contextlib.suppress(Trouble, OSError):
                said = folders.word(self._paper.plan_url)
                return Plan.from_json(said) if said is not None else self._paper.steps
            pause.wait(_ASK_EVERY)


def _mounted() -> dict[str, list[int]]:
    try:
        return msgspec.json.decode(Path(paper.MOUNTED).read_bytes(), type=dict[str, list[int]])
    except (FileNotFoundError, msgspec.DecodeError):
        return {}


def _staged() -> Told | None:
    try:
        return msgspec.json.decode(Path(paper.STAGED).read_bytes(), type=Told)
    except (FileNotFoundError, msgspec.DecodeError):  # none yet, or it was ended while it wrote
        return None


def carried(stager: Stager, over: threading.Event) -> Told:
    told = _staged()
    if told is None:
        told = stager.carry()
        _write(paper.STAGED, told)
    # One that ends before Kubernetes has seen the script's end is started again, and then ends here, too.
    over.wait(_SEEN_WITHIN)
    return told


def _write(path: str, told: Told) -> None:
    Path(path).write_bytes(msgspec.json.encode(told))


def main(way: str, over: threading.Event) -> int:
    """`over` is set when Kubernetes wants it to end."""
    if way == "serve":
        from hansa.drivers.kubernetes.stager import worker  # noqa: PLC0415 - the other ways do without

        worker.serve(worker.Worker(), Path(paper.ORDER_FOLDER, "token").read_text(), over)
        return 0
    stager = Stager(msgspec.json.decode(Path(paper.ORDER_FOLDER, "order.json").read_bytes(), type=Paper), over)
    told = stager.bring() if way == "in" else carried(stager, over)
    _write("/dev/termination-log", told)
    return 1 if told.error else 0

"""The folders, the user and the two programs of a pod, without a Kubernetes: walls of bubblewrap around them.

    first, second = answered(call("echo one"), call("echo two"))  # a worker's pod
    first, second = carried("echo one", "echo two")  # those of two jobs that have nothing to store

A worker's script is the input of each call. Run as a program it is the inside of those walls.
"""

import contextlib
import http.client
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Secret

from contracts.orders import order
from hansa.drivers.kubernetes import job_manifest, worker_manifest
from hansa.drivers.kubernetes.pods import PLACES, Shape
from hansa.drivers.kubernetes.stager import calls, paper
from hansa.drivers.kubernetes.stager.calls import Answer, Call
from hansa.drivers.kubernetes.stager.paper import Paper, Told
from hansa.drivers.runs import removal
from hansa.drivers.runs.stager.plan import Plan
from real import parts

_SHAPE = Shape(cluster="c", stager_image="i")
_SYSTEM = ("/usr", "/bin", "/lib", "/lib64", "/sbin", "/etc")
_LIMIT = 60.0
_TOKEN = "token-of-the-worker"
_CALL = "/hansa/call"


def call(script: str, plan: Plan | None = None) -> Call:
    variables = {"INPUT_FILE_PATH": f"{PLACES.job}/input/script", "TMP_OUTPUT_DIR": PLACES.output}
    text = (plan or Plan()).to_json().decode()
    return Call(plan=text, input_name="script", input=script.encode(), variables=variables, seconds=20)


def answered(*wanted: Call) -> list[Answer]:
    """What one worker says to these calls, one after the other."""
    return msgspec.msgpack.decode(_within_walls("worker", msgspec.msgpack.encode(wanted)), type=list[Answer])


def carried(*scripts: str) -> list[Told]:
    """What the stagers of jobs say, each after one of these scripts."""
    return msgspec.msgpack.decode(_within_walls("jobs", msgspec.msgpack.encode(scripts)), type=list[Told])


def _within_walls(pod: str, asked: bytes) -> bytes:
    program = parts.require("bubblewrap")
    inside = [sys.executable, "-m", "drivers.kubernetes.stager.pod", pod]
    done = subprocess.run([program, *_walls(), *inside], input=asked, capture_output=True, timeout=_LIMIT, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def _walls() -> Iterator[str]:
    yield from ("--unshare-all", "--uid", str(_SHAPE.user), "--gid", str(_SHAPE.user), "--die-with-parent")
    yield from ("--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp")
    for path in (*_SYSTEM, sys.base_prefix, sys.prefix, *filter(None, sys.path)):
        if Path(path).is_symlink():
            yield from ("--symlink", str(Path(path).readlink()), path)
        elif Path(path).exists():
            yield from ("--ro-bind", path, path)
    for empty in (PLACES.job, PLACES.output, calls.TURN, paper.ORDER_FOLDER, paper.NOTES, PLACES.config, _CALL):
        yield from ("--tmpfs", empty)
    yield from ("--setenv", "PYTHONPATH", ":".join(filter(None, sys.path)), "--chdir", PLACES.job)


def _jobs() -> None:
    Path(_CALL, "call").touch()
    Path(paper.ORDER_FOLDER, "order.json").write_bytes(msgspec.json.encode(Paper(plan=Plan().to_json().decode())))
    wanted = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=list[str])
    sys.stdout.buffer.write(msgspec.msgpack.encode([_job(script) for script in wanted]))


def _job(script: str) -> Told:
    for folder in (PLACES.job, PLACES.output, paper.NOTES):
        for left in Path(folder).iterdir():
            if str(left) != PLACES.output:
                removal.remove(left) if left.is_dir() else left.unlink()
    Path(PLACES.config, "script.sh").write_text(script)
    made = job_manifest.job(order("true"), "n", _SHAPE, Secret(metadata=ObjectMeta(name="j", uid="u")))
    assert made.spec is not None
    assert made.spec.template.spec is not None
    command = list(made.spec.template.spec.containers[0].command or ())
    stager = [sys.executable, "-m", "hansa.drivers.kubernetes.stager", "out"]
    with subprocess.Popen(stager, stdout=sys.stderr) as carrying, _running(command):
        end = time.monotonic() + _LIMIT
        while not os.path.exists(paper.STAGED) and time.monotonic() < end:
            time.sleep(0.05)
        carrying.terminate()  # as Kubernetes does once the script has ended
        carrying.wait(_LIMIT)
    return msgspec.json.decode(Path("/dev/termination-log").read_bytes(), type=Told)


def _worker() -> None:
    Path(paper.ORDER_FOLDER, "token").write_text(_TOKEN)
    Path(PLACES.config, "script.sh").write_text('. "$INPUT_FILE_PATH"')
    wanted = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=list[Call])
    with _running([sys.executable, "-m", "hansa.drivers.kubernetes.stager", "serve"]):
        _ask("GET", b"")  # it made the pipe at which the script's container waits
        with _running(_script_command()):
            said = [msgspec.msgpack.decode(_ask("POST", msgspec.msgpack.encode(one)), type=Answer) for one in wanted]
    sys.stdout.buffer.write(msgspec.msgpack.encode(said))


def _script_command() -> list[str]:
    owner = Secret(metadata=ObjectMeta(name="w", uid="u"))
    made = worker_manifest.pod(order("true"), "w", "n", _SHAPE, owner)
    assert made.spec is not None
    return list(made.spec.containers[0].command or ())


@contextlib.contextmanager
def _running(words: list[str]) -> Iterator[None]:
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=sys.stderr) as process:
        try:
            yield
        finally:
            process.kill()


def _ask(method: str, body: bytes) -> bytes:
    """As soon as it listens."""
    end = time.monotonic() + _LIMIT
    while True:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", calls.PORT, timeout=_LIMIT)
            connection.request(method, "/", body, {"Authorization": f"Bearer {_TOKEN}"})
            answer = connection.getresponse()
            assert answer.status == 200, answer.status
            return answer.read()
        except ConnectionRefusedError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


if __name__ == "__main__":
    {"worker": _worker, "jobs": _jobs}[sys.argv[1]]()

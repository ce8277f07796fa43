"""The folders, the user and the two programs of a worker's pod, without a Kubernetes: walls of bubblewrap around them.

    first, second = answered(call("echo one"), call("echo two"))

The pod's script is the input of each call. Run as a program it is the inside of those walls.
"""

import contextlib
import http.client
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Secret

from contracts.orders import order
from hansa.drivers.kubernetes import worker_manifest
from hansa.drivers.kubernetes.pods import PLACES, Shape
from hansa.drivers.kubernetes.stager import calls, paper
from hansa.drivers.kubernetes.stager.calls import Answer, Call
from hansa.drivers.runs.stager.plan import Plan
from real import parts

_SHAPE = Shape(cluster="c", stager_image="i")
_SYSTEM = ("/usr", "/bin", "/lib", "/lib64", "/sbin", "/etc")
_LIMIT = 60.0
_TOKEN = "token"


def call(script: str, plan: Plan | None = None) -> Call:
    variables = {"INPUT_FILE_PATH": f"{PLACES.job}/input/script", "TMP_OUTPUT_DIR": PLACES.output}
    text = (plan or Plan()).to_json().decode()
    return Call(plan=text, input_name="script", input=script.encode(), variables=variables, seconds=20)


def answered(*wanted: Call) -> list[Answer]:
    """What one worker says to these calls, one after the other."""
    program = parts.require("bubblewrap")
    inside = [sys.executable, "-m", "drivers.kubernetes.stager.pod"]
    asked = msgspec.msgpack.encode(wanted)
    done = subprocess.run([program, *_walls(), *inside], input=asked, capture_output=True, timeout=_LIMIT, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return msgspec.msgpack.decode(done.stdout, type=list[Answer])


def _walls() -> Iterator[str]:
    yield from ("--unshare-all", "--uid", str(_SHAPE.user), "--gid", str(_SHAPE.user), "--die-with-parent")
    yield from ("--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp")
    for path in (*_SYSTEM, sys.base_prefix, sys.prefix, *filter(None, sys.path)):
        if Path(path).is_symlink():
            yield from ("--symlink", str(Path(path).readlink()), path)
        elif Path(path).exists():
            yield from ("--ro-bind", path, path)
    for empty in (PLACES.job, PLACES.output, calls.TURN, paper.ORDER_FOLDER, PLACES.config):
        yield from ("--tmpfs", empty)
    yield from ("--setenv", "PYTHONPATH", ":".join(filter(None, sys.path)), "--chdir", PLACES.job)


def _inside() -> None:
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
    _inside()

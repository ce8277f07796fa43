"""What reaches a caller from a former call to the same worker? Nothing, whatever that call's script left, and whether
or not the script of this one comes to run. Nor does a script's word lead the stager to what it may not read itself."""

import base64

import pytest

from drivers.kubernetes.stager.pod import answered, call
from hansa.drivers.kubernetes.stager import calls
from hansa.drivers.runs import reply
from hansa.drivers.runs.stager.plan import Fetch, Plan, Store

SECRET = "of the former caller"
# Each a folder in which a file is that the script closed, or closed the way to.
LEAVING = f"""
cd "$TMP_OUTPUT_DIR"; mkdir -p read-only closed closed-below/low closed-file
for place in read-only closed closed-below/low closed-file; do echo {SECRET} > $place/f; done
chmod 0 closed closed-below/low closed-file/f; chmod 0555 read-only closed-below closed-file
"""


def test_what_a_script_closed_is_not_the_next_callers() -> None:
    looking, leaving = 'ls -A "$TMP_OUTPUT_DIR"; echo mine', 'echo mine > "$TMP_OUTPUT_DIR/mine"'
    former, looked, left = answered(call(LEAVING), call(looking), call(leaving))
    assert (former.exit_code, former.spoilt) == (0, False)
    assert (looked.body, looked.exit_code) == (b"mine\n", 0)
    assert base64.b64decode(left.body) == b"mine\n"


def test_what_a_script_printed_is_not_the_answer_of_a_call_that_never_ran() -> None:
    away = Store("s3", "http://127.0.0.1:1", access_key="a", secret_key="s", lent=True)
    hopeless = Plan((away,), Fetch(0, "bucket", "key", "input"), patience=0.0)
    former, failed = answered(call(f"echo {SECRET}"), call("echo mine", hopeless))
    assert former.body.decode() == f"{SECRET}\n"
    assert (failed.body, failed.exit_code, failed.spoilt) == (b"", None, True)


def test_what_still_prints_after_its_call_prints_to_nobody() -> None:
    lingering = f"(while [ ! -e /job/mine ]; do sleep 0.05; done; echo {SECRET}; touch /job/said) & exit 0"
    waiting = "touch /job/mine; while [ ! -e /job/said ]; do sleep 0.05; done; echo mine"
    _, next_one = answered(call(lingering), call(waiting))
    assert next_one.body == b"mine\n"


def test_a_worker_that_cannot_be_cleared_runs_nothing_more() -> None:
    _, refused = answered(call("chmod 0555 /job"), call("echo mine"))
    assert (refused.body, refused.exit_code, refused.spoilt) == (b"", None, True)


def test_what_is_no_file_is_not_read_where_a_script_speaks() -> None:
    ways = ("ln -s /hansa/order/token", "ln -s /dev/zero", "mkfifo", "mkdir")
    *found, honest = answered(*(call(f"rm {calls.OUT}; {way} {calls.OUT}") for way in ways), call("echo mine"))
    for one in found:
        assert (one.body, one.exit_code, one.spoilt) == (b"", None, True)
        assert calls.OUT in one.reason
    assert (honest.body, honest.exit_code) == (b"mine\n", 0)


@pytest.mark.parametrize("way", ["ln -s /dev/zero", "mkfifo"])
def test_nor_where_its_end_is_looked_for(way: str) -> None:
    (one,) = answered(call(f"{way} {calls.END}; while :; do sleep 0.1; done"))
    assert (one.body, one.exit_code, one.spoilt) == (b"", None, True)
    assert calls.END in one.reason


def test_of_what_a_script_prints_a_part_is_read_and_nonsense_is_no_exit_code() -> None:
    long, odd = answered(
        call(f"truncate -s 1G {calls.OUT}"), call(f"echo nonsense > {calls.END}; while :; do sleep 0.1; done")
    )
    assert (len(long.body), long.exit_code) == (reply.LARGEST, 0)
    assert (odd.body, odd.exit_code, odd.spoilt) == (b"", None, True)
    assert calls.END in odd.reason


def test_what_stands_where_a_call_is_written_is_not_written_through() -> None:
    lingering = f"(while :; do ln -s /job/through {calls.CALL} 2>/dev/null; done) & exit 0"
    _, next_one = answered(call(lingering), call("echo mine; ls /job/through 2>/dev/null; exit 0"))
    assert next_one.body in (b"mine\n", b"")  # it may win the race for the name, and then nothing runs

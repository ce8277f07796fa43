"""The real program: what it writes on a terminal, into a pipe, and when its reader goes away."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from entrypoints.cli.small_server import Hansa, SmallServer
from hansa.entrypoints.cli import exits
from hansa.entrypoints.cli.screen import Screen, plain
from hansa.kernel import errors, plain_text

PROGRAM = [sys.executable, "-c", "from hansa.entrypoints.cli import main; main()"]


def on_terminal(*arguments: str, **env: str) -> str:
    """What a terminal shows."""
    leader, follower = pty.openpty()
    try:
        process = subprocess.Popen(
            [*PROGRAM, *arguments], stdin=follower, stdout=follower, stderr=follower,
            env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "200", **env},
        )  # fmt: skip
    finally:
        os.close(follower)
    shown = b""
    try:
        while piece := _read(leader):
            shown += piece
        assert process.wait(timeout=60) == 0, shown.decode()
    finally:
        process.kill()
        process.wait()
        os.close(leader)
    return shown.decode()


def _read(leader: int) -> bytes:
    try:
        return os.read(leader, 65536)
    except OSError:  # the other end is closed
        return b""


def test_colour_on_a_terminal_only(admin: SmallServer, hansa: Hansa, monkeypatch: pytest.MonkeyPatch) -> None:
    admin.on("GET /system/services", [{"name": "up", "deployment": {"state": "ready"}}])
    assert "\x1b[" in on_terminal("service", "ls")
    assert "\x1b[3" not in on_terminal("service", "ls", NO_COLOR="1")
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich would obey it
    assert "\x1b" not in hansa("service", "ls").out


def test_a_bar_on_a_terminal(admin: SmallServer, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(bytes(2_000_000))
    admin.on("POST /system/buckets/b/presign", {"method": "PUT", "url": f"{admin.url}/s3"}).on("PUT /s3", b"")
    shown = on_terminal("bucket", "put", "f", "b/x")
    assert "f → b/x" in shown
    assert "MiB" in shown


def test_a_reader_that_goes_away_is_no_failure(admin: SmallServer) -> None:
    admin.on("GET /system/services", [{"name": f"service-{n}"} for n in range(5000)])
    program = subprocess.Popen([*PROGRAM, "service", "ls"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert program.stdout is not None
        assert program.stderr is not None
        program.stdout.readline()
        program.stdout.close()
        assert program.wait(timeout=60) == 0
        assert program.stderr.read() == b""
    finally:
        program.kill()
        program.wait()
        if program.stderr:
            program.stderr.close()


def test_control_characters_do_not_reach_the_terminal(admin: SmallServer, hansa: Hansa) -> None:
    admin.on("GET /system/services", [{"name": "\x1b]0;evil\x07[red]up[/red]"}])
    out = hansa("service", "ls").out
    assert "\x1b" not in out
    assert "[red]up[/red]" in out
    assert plain(["a", None, True, 1]) == "a, , yes, 1"


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_only_plain_words_of_others_reach_the_terminal(admin: SmallServer, hansa: Hansa, form: list[str]) -> None:
    """Neither C1 controls, which some terminals obey as they obey an escape, nor what turns or hides the text."""
    name = "\x9b2J\x85\u202egnp.exe\u2066\u200e\u061c\ufeff\x7f"
    admin.on("GET /system/services", [{"name": name}])
    out = hansa("service", "ls", *form).out
    assert plain_text.plain(out) == out
    if form:
        assert json.loads(out)[0]["name"] == name


def test_many_documents_of_others_are_as_plain(capsys: pytest.CaptureFixture[str]) -> None:
    Screen(as_json=True).record({"line": "\x9b2J\u202e", "half": "\ud800"})
    out = capsys.readouterr().out
    assert plain_text.plain(out) == out
    assert json.loads(out) == {"line": "\x9b2J\u202e", "half": "\ud800"}


@pytest.mark.parametrize("parting", ["\r\n", "\n"])
def test_only_a_new_line_makes_one(capsys: pytest.CaptureFixture[str], parting: str) -> None:
    Screen().block(f"one\x85two\u2028three\x0cfour{parting}five")
    assert capsys.readouterr().out == "one�two�three�four\nfive\n"


def test_a_log_cannot_command_the_terminal_and_stays_as_it_is_in_a_pipe(admin: SmallServer) -> None:
    log = b"\x1b]0;owned\x07\x1b[2J50%\r100%\t\xc3\xa4\x9b\xc2\x9b31m\x00\xe2\x80\xae\nend\n"
    admin.on("GET /system/logs/s/s-1", log)
    shown = on_terminal("job", "logs", "s", "s-1").replace("\r\n", "\n")  # a terminal adds the \r
    assert shown == "�]0;owned��[2J50%\r100%\tä��31m��\nend\n"
    piped = subprocess.run([*PROGRAM, "job", "logs", "s", "s-1"], capture_output=True, timeout=60, check=True)
    assert piped.stdout == log


def test_long_values_are_not_cut_in_a_pipe(admin: SmallServer, hansa: Hansa) -> None:
    admin.on("GET /system/services", [{"name": "up", "image": "registry.example/" + "x" * 300}])
    assert "x" * 300 in hansa("service", "ls").out


def test_exit_codes() -> None:
    cases = {errors.Forbidden: 3, errors.NotFound: 4, errors.Conflict: 5, errors.Temporary: 6, errors.Invalid: 1}
    assert {kind: exits.of(kind("x")) for kind in cases} == cases
    assert exits.of_all([]) == 0
    assert exits.of_all([errors.NotFound("x"), errors.NotFound("y")]) == 4
    assert exits.of_all([errors.NotFound("x"), errors.Conflict("y")]) == 1


def test_help_names_the_exit_codes(hansa: Hansa) -> None:
    ran = hansa("--help")
    assert ran.code == 0
    for code in exits.Exit:
        assert f"{code.value} {exits.MEANING[code].split()[0]}" in " ".join(ran.out.split())


def test_a_group_without_a_command_shows_its_help(hansa: Hansa) -> None:
    ran = hansa("service")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("Usage: hansa service")
    assert len(ran.err.splitlines()) > 5


def test_completion_is_there(hansa: Hansa) -> None:
    script = subprocess.run(
        PROGRAM, env={**os.environ, "_HANSA_COMPLETE": "complete_bash", "COMP_WORDS": "hansa ser", "COMP_CWORD": "1"},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert script.stdout.split() == ["server", "service"]

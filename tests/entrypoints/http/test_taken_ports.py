"""Which settings does a start name that finds its port taken?"""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("role", "setting", "other"),
    [
        ("manager", "http.port", "hub."),
        ("manager", "exposed.port", "hub."),
        ("hub", "hub.port", "http."),
        ("hub", "hub.members_port", "http."),
        ("both", "hub.members_port", "http."),
    ],
)
def test_the_settings_of_that_very_port(tmp_path: Path, role: str, setting: str, other: str) -> None:
    environment = {name: text for name, text in os.environ.items() if not name.startswith("HANSA_")}
    environment |= {"HANSA_DATA": str(tmp_path), "HANSA_ROLE": role}
    with socket.create_server(("127.0.0.1", 0)) as taken:
        for one in ("http.port", "hub.port", "hub.members_port", setting):
            number = taken.getsockname()[1] if one == setting else 0
            environment["HANSA_" + one.upper().replace(".", "__")] = str(number)
        command = [sys.executable, "-m", "hansa", "server"]
        ended = subprocess.run(command, env=environment, text=True, capture_output=True, timeout=60, check=False)
    assert ended.returncode != 0
    assert f"{setting} to a free port" in ended.stderr, ended.stderr
    assert other not in ended.stderr

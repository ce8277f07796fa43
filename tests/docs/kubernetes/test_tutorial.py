"""The tutorial is true: from an empty Kubernetes to a federated service, word for word, in a real cluster."""

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from deploy import chart
from docs.test_readme_tour import _SH, ROOT
from real.kubernetes import build, hansa_image, images
from real.kubernetes.access import Access
from real.kubernetes.fixtures import require_names
from real.kubernetes.helm_client import Helm

PAGE = ROOT / "docs" / "tutorial" / "kubernetes.md"
SECONDS = 840
_MARK = "=== block"
_WORDS = (ROOT / "examples" / "01-first-service" / "greeting.txt").read_text().split()

pytestmark = [pytest.mark.deep, pytest.mark.timeout(SECONDS + 300)]


@dataclass(frozen=True, slots=True)
class Desk:
    """A checkout with a terminal in it, as the reader has one."""

    folder: Path
    env: dict[str, str]
    access: Access

    def follow(self, blocks: list[str]) -> list[str]:
        """What each block said. All in one shell, which stops at the first command that fails."""
        script = self.folder / "tutorial.sh"
        script.write_text("".join(f"echo '{_MARK}'\n{block}" for block in blocks))
        said = self.folder / "said"
        with said.open("wb") as file:  # no pipe: tunnels in the background would hold it open
            shell = subprocess.Popen(
                [*self._inside(), "sh", "-eu", str(script)],
                cwd=self.folder,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                code = shell.wait(SECONDS)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(shell.pid, signal.SIGKILL)
                shell.wait()
        assert code == 0, said.read_text()
        return said.read_text().split(f"{_MARK}\n")[1:]

    def quietly(self, *words: str) -> str:
        """What is left, or goes, whatever became of it before."""
        done = subprocess.run(words, env=self.env, capture_output=True, text=True, timeout=200, check=False)
        return done.stdout + done.stderr

    def _inside(self) -> list[str]:
        """The page's ports are free in the node's own network, whoever runs what on this machine."""
        return ["nsenter", f"--target={self.access.first}", "--net", "--"]


@pytest.fixture
def desk(helm: Helm, kubernetes: Access, tmp_path: Path) -> Iterator[Desk]:
    require_names(kubernetes)
    bring_images(kubernetes)
    for name in ("examples", "deploy"):
        (tmp_path / name).symlink_to(ROOT / name)
    desk = Desk(tmp_path, environment(tmp_path, helm, kubernetes), kubernetes)
    try:
        yield desk
    finally:
        for name in ("visby", "lubeck"):
            desk.quietly("helm", "uninstall", "hansa", "--namespace", name, "--ignore-not-found")
        of_users = "hansa/cluster in (lubeck, visby)"
        desk.quietly("kubectl", "delete", "namespace", "lubeck", "visby", "--ignore-not-found", "--wait=false")
        desk.quietly("kubectl", "delete", "namespace", "--selector", of_users, "--ignore-not-found", "--wait=false")


def bring_images(access: Access) -> None:
    """What the page says is done once, and what nodes would pull."""
    about = (chart.CHART / "Chart.yaml").read_text()
    (version,) = re.findall(r'^appVersion: "(.+)"$', about, re.MULTILINE)
    wanted = f"localhost/hansa:{version}"
    assert f"--tag {wanted} ." in PAGE.read_text()
    access.import_image(hansa_image.server_archive())
    access.inside("ctr", "--namespace", "k8s.io", "images", "tag", "--force", hansa_image.SERVER, wanted)
    (image,) = re.findall(r"image: (\S+)", (ROOT / "examples" / "05-kubernetes" / "fdl.yaml").read_text())
    access.import_image(images.busybox(image))


def environment(folder: Path, helm: Helm, access: Access) -> dict[str, str]:
    programs = build.found()
    assert programs is not None
    (folder / "bin").mkdir()
    (folder / "bin" / "hansa").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m hansa "$@"\n')
    (folder / "bin" / "hansa").chmod(0o755)
    for program in (programs / "kubectl", helm.program):
        (folder / "bin" / program.name).symlink_to(program)
    return {
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        "HOME": str(folder),
        "KUBECONFIG": str(access.kubeconfig),
        "COLUMNS": "200",
    }


def test_from_an_empty_kubernetes_to_a_federated_service(desk: Desk) -> None:
    blocks = _SH.findall(PAGE.read_text())
    lubeck, tunnel, _, visby, deployed, here, there, fetched, _ = desk.follow(blocks)
    assert "1/1     Running" in lubeck
    assert '"ready":true' in tunnel
    assert re.findall(r"^(\w+) +ready ", visby, re.MULTILINE) == ["lubeck", "visby"]
    assert "visby/tally-visby  (in sync)" in deployed
    assert "condition met" in here
    assert re.search(r"^visby-svc +tally-", there, re.MULTILINE)
    assert "ran at visby" in fetched
    assert fetched.count(" Succeeded ") == 2
    told = {line.partition(",")[0] for line in fetched.splitlines() if " counted in " in line}
    assert told == {f"{name}.txt has {len(_WORDS)} words" for name in ("one", "two")}
    left = desk.quietly("kubectl", "get", "namespaces", "--output", "name")
    assert not re.findall(r"namespace/(?:lubeck|visby)\b", left)

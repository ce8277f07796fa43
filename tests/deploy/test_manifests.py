"""Are the plain manifests what the chart makes, and complete without Helm?"""

import subprocess
import sys

import yaml

from deploy import chart
from real.kubernetes.helm_client import Helm

FOLDER = chart.ROOT / "deploy" / "manifests"
_WIDE = ("Cluster", "Namespace", "ValidatingAdmissionPolicy")


def test_they_are_not_stale(helm: Helm) -> None:
    command = [sys.executable, str(chart.ROOT / "scripts" / "render_manifests.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def test_every_object_is_ours_and_has_its_place() -> None:
    for path in FOLDER.glob("*.yaml"):
        text = path.read_text()
        assert "helm.sh/" not in text
        for one in yaml.safe_load_all(text):
            assert one["metadata"]["labels"]["app.kubernetes.io/name"] == "hansa"
            assert "namespace" in one["metadata"] or one["kind"].startswith(_WIDE)

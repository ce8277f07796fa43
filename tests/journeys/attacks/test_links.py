"""A script leaves links wherever files are fetched, noted or put: nothing outside of its folders is read or changed.

The folder outside is open to everybody, so only the walls of whoever moves the files keep them from it.
"""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from journeys.attacks.whose_manager import WHOSE_MANAGER, as_user
from journeys.conftest import signing_in
from journeys.objects import make_bucket, store_of
from journeys.waiting import run_job
from real import parts
from real.identity_provider import IdentityProvider
from real.manager import running_manager, trusting

SECRET = "outside-secret-2718"


@pytest.fixture
def outside() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="hansa-outside-", dir="/var/tmp"))
    folder.chmod(0o777)
    (folder / "secret").write_text(SECRET)
    (folder / "secret").chmod(0o666)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize("whose", WHOSE_MANAGER)
def test_no_link_leads_whoever_moves_files_out_of_a_run(
    sign_in_provider: IdentityProvider, outside: Path, whose: str
) -> None:
    parts.require("bubblewrap")
    with running_manager(trusting(sign_in_provider), user=as_user(whose)) as own:
        alice = signing_in(own, sign_in_provider)("alice")
        make_bucket(alice, "alices", "data/sub/d.txt", b"d")
        mounted = f"""
        cd /mnt/alices/data; rm -rf sub; ln -s {outside} sub; ln -s {outside}/secret leak
        ln -s {own.data}/vault.key key; ln -s /proc/self/environ environ
        """
        noted = f"ln -s {outside}/note /job/.unfinished-upload"
        left = f"""
        cd $TMP_OUTPUT_DIR; ln -s {outside} folder; ln -s {outside}/secret leak; ln -s /proc/self/mem mem
        head -c 40m /dev/zero >large; echo fine >fine
        """
        definition = {
            "name": "links",
            "image": "debian",
            "memory": "64Mi",
            "ephemeral_storage_request": "256Mi",
            "script": "\n".join((mounted, noted, left)),
            "mount": {"storage_provider": "minio.default", "path": "alices/data"},
            "output": [{"storage_provider": "minio.default", "path": "alices/out"}],
        }
        answer = alice.post("/system/services", json=definition)
        assert answer.status_code == 201, answer.text
        log = run_job(alice, "links")
        store = store_of(alice)
        found = {one["Key"] for one in store.list_objects_v2(Bucket="alices")["Contents"]}
        store.close()
    assert SECRET not in log
    assert found == {"data/sub/d.txt", "out/large", "out/fine"}
    assert [(path.name, path.read_text()) for path in outside.iterdir()] == [("secret", SECRET)]

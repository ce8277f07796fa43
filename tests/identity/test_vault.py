"""Do sealed secrets open only with our keys, and only in their place?"""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansa.identity import Vault
from hansa.identity.errors import VaultLocked

_SECRETS = {"refresh_token": "s3cr3t-token", "ключ": "ñ\n\x00"}
_TEXT = st.text(st.characters(exclude_categories=["Cs"]))


def test_what_is_sealed_opens_and_does_not_show() -> None:
    vault = Vault([Vault.new_key()])
    sealed = vault.seal(_SECRETS)
    assert vault.open(sealed) == _SECRETS
    assert b"s3cr3t" not in sealed
    assert vault.seal(_SECRETS) != sealed  # equal secrets do not look equal


@given(st.dictionaries(_TEXT, _TEXT), _TEXT)
def test_any_text_survives(values: dict[str, str], purpose: str) -> None:
    vault = Vault([b"A" * 43 + b"="])
    assert vault.open(vault.seal(values, purpose=purpose), purpose=purpose) == values


def test_a_seal_opens_only_where_it_was_made_for() -> None:
    vault = Vault([Vault.new_key()])
    sealed = vault.seal(_SECRETS, purpose="service of alice")
    with pytest.raises(VaultLocked):
        vault.open(sealed, purpose="service of bob")
    with pytest.raises(VaultLocked):
        vault.open(sealed)


def test_a_changed_or_foreign_seal_does_not_open() -> None:
    vault = Vault([Vault.new_key()])
    sealed = vault.seal(_SECRETS)
    middle = len(sealed) // 2
    changed = sealed[:middle] + (b"A" if sealed[middle : middle + 1] != b"A" else b"B") + sealed[middle + 1 :]
    for bad in (changed, b"", b"not sealed at all", Vault([Vault.new_key()]).seal(_SECRETS)):
        with pytest.raises(VaultLocked) as refusal:
            vault.open(bad)
        assert "s3cr3t" not in str(refusal.value)


def test_keys_change_without_losing_secrets() -> None:
    old, new = Vault.new_key(), Vault.new_key()
    sealed = Vault([old]).seal(_SECRETS, purpose="p")
    both = Vault([new, old])
    resealed = both.reseal(sealed)
    assert both.open(sealed, purpose="p") == _SECRETS
    assert Vault([new]).open(resealed, purpose="p") == _SECRETS
    with pytest.raises(VaultLocked):
        Vault([new]).open(sealed, purpose="p")


@pytest.mark.parametrize("keys", [[], ["short"], ["A" * 44]])
def test_bad_keys_are_refused_and_not_repeated(keys: list[str]) -> None:
    with pytest.raises(VaultLocked) as refusal:
        Vault(keys)
    assert not any(key in str(refusal.value) for key in keys)


def test_the_key_file_is_made_once_and_only_ours(tmp_path: Path) -> None:
    path = tmp_path / "data" / "vault-key"
    sealed = Vault.at(path).seal(_SECRETS)
    assert path.stat().st_mode & 0o777 == 0o600
    assert Vault.at(path).open(sealed) == _SECRETS
    assert [entry.name for entry in path.parent.iterdir()] == ["vault-key"]


def test_a_key_file_others_may_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "vault-key"
    Vault.at(path)
    path.chmod(0o644)
    with pytest.raises(VaultLocked) as refusal:
        Vault.at(path)
    assert "chmod 600" in refusal.value.hint


def test_a_second_line_keeps_the_old_key(tmp_path: Path) -> None:
    path = tmp_path / "vault-key"
    sealed = Vault.at(path).seal(_SECRETS)
    path.write_text(f"# newest first\n{Vault.new_key()}\n\n{path.read_text()}")
    assert Vault.at(path).open(sealed) == _SECRETS


def test_two_managers_starting_together_use_one_key(tmp_path: Path) -> None:
    program = (
        "import sys, pathlib; from hansa.identity import Vault; sys.stdin.read(1);"
        "sys.stdout.buffer.write(Vault.at(pathlib.Path(sys.argv[1])).seal({'a': 'b'}))"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "vault-key")]
    starting = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={"PYTHONPATH": _src()})
        for _ in range(4)
    ]
    try:
        sealed = [process.communicate(b"x", timeout=30)[0] for process in starting]
    finally:
        for process in starting:
            process.kill()
            process.wait()
    vault = Vault.at(tmp_path / "vault-key")
    assert [vault.open(one) for one in sealed] == [{"a": "b"}] * 4


def _src() -> str:
    return str(Path(__file__).parents[2] / "src")


@pytest.mark.parametrize("content", ["", "# only a comment\n", "half a ke"])
def test_a_broken_key_file_is_named_and_not_replaced(tmp_path: Path, content: str) -> None:
    path = tmp_path / "vault.key"
    path.write_text(content)
    path.chmod(0o600)
    for needed in (True, False):
        with pytest.raises(VaultLocked) as refusal:
            Vault.at(path, needed=needed)
        assert str(path) in refusal.value.message
        assert "put back the vault.key" in refusal.value.hint
        assert "new_key" not in refusal.value.hint
    assert path.read_text() == content


def test_a_missing_key_that_is_needed_is_not_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "vault.key"
    with pytest.raises(VaultLocked, match=f"{path} is missing") as refusal:
        Vault.at(path, needed=True)
    assert "put back the vault.key" in refusal.value.hint
    assert not path.exists()

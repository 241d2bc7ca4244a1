import os
import stat

import psycopg
import pytest

from regulars.kit import vault
from regulars.kit.settings import Settings

KEY = "k" * 32


def test_what_is_sealed_opens_again_and_looks_different_each_time():
    box = vault.Vault(KEY)
    first, second = (box.seal(b"JBSWY3DPEHPK3PXP", context="totp 1") for _ in range(2))
    assert first != second
    assert b"JBSWY3DP" not in first
    assert box.open(first, context="totp 1") == b"JBSWY3DPEHPK3PXP"


@pytest.mark.parametrize(
    "spoil",
    [
        lambda one: one[:-1],
        lambda one: b"\x02" + one[1:],
        lambda _one: b"",
        lambda one: one[:-1] + bytes([one[-1] ^ 1]),
    ],
)
def test_what_was_changed_does_not_open(spoil):
    box = vault.Vault(KEY)
    with pytest.raises(vault.VaultError):
        box.open(spoil(box.seal(b"secret", context="totp 1")), context="totp 1")


def test_a_secret_does_not_open_in_another_s_place_or_with_another_key():
    sealed = vault.Vault(KEY).seal(b"secret", context="totp 1")
    with pytest.raises(vault.VaultError):
        vault.Vault(KEY).open(sealed, context="totp 2")
    with pytest.raises(vault.VaultError):
        vault.Vault("x" * 32).open(sealed, context="totp 1")


def test_without_a_key_the_sentence_says_what_to_set():
    keyless = vault.of(Settings(database_url="postgresql://elsewhere"))
    with pytest.raises(vault.VaultError, match="Set REGULARS_SECRET_KEY"):
        keyless.seal(b"x", context="totp 1")


def test_the_embedded_database_keeps_its_key_in_a_file_of_its_owner(tmp_path):
    settings = Settings(data_dir=tmp_path / "data")
    assert vault.with_key(settings, may_create_key=False).secret_key is None
    first = vault.with_key(settings, may_create_key=True)
    again = vault.with_key(settings, may_create_key=True)
    assert first.secret_key == again.secret_key
    file = tmp_path / "data" / vault.KEY_FILE_NAME
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in file.parent.iterdir()] == [vault.KEY_FILE_NAME]


def test_the_folder_of_the_key_file_is_synced_when_a_name_in_it_changes(tmp_path, monkeypatch):
    synced = []
    is_synced = os.fsync

    def sync(descriptor):
        is_synced(descriptor)
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            synced.append(sorted(path.name for path in tmp_path.iterdir()))

    monkeypatch.setattr(os, "fsync", sync)
    vault.with_key(Settings(data_dir=tmp_path), may_create_key=True)
    old = vault.Vault((tmp_path / vault.KEY_FILE_NAME).read_text().strip())
    new = vault.new_key_file(tmp_path / vault.NEW_KEY_FILE_NAME)
    vault.finish_key_rotation(tmp_path, new.fingerprint)
    aside = f"secret.key.{old.fingerprint}"
    expected = [["secret.key"], ["secret.key", "secret.key.new"], [aside, "secret.key.new"], ["secret.key", aside]]
    assert [sorted(names) for names in synced] == [sorted(names) for names in expected]


def test_a_key_file_that_others_can_read_is_refused(tmp_path):
    settings = Settings(data_dir=tmp_path)
    vault.with_key(settings, may_create_key=True)
    (tmp_path / vault.KEY_FILE_NAME).chmod(0o644)
    with pytest.raises(vault.VaultError, match="chmod 600"):
        vault.with_key(settings, may_create_key=True)


def test_the_setting_wins_and_an_external_database_makes_no_file(tmp_path):
    assert vault.with_key(Settings(data_dir=tmp_path, secret_key=KEY), may_create_key=True).secret_key == KEY
    external = Settings(data_dir=tmp_path, database_url="postgresql://elsewhere")
    assert vault.with_key(external, may_create_key=True).secret_key is None
    assert list(tmp_path.iterdir()) == []


def test_the_database_knows_its_key_and_refuses_another(database_url):
    with psycopg.connect(database_url, autocommit=True) as connection:
        vault.register_key(connection, vault.NoVault())
        vault.register_key(connection, vault.Vault(KEY))
        vault.register_key(connection, vault.Vault(KEY))
        with pytest.raises(vault.VaultError, match="start with that one"):
            vault.register_key(connection, vault.Vault("x" * 32))
        with pytest.raises(vault.VaultError, match="is missing"):
            vault.register_key(connection, vault.NoVault())


def test_the_key_is_in_no_repr():
    assert KEY not in repr(Settings(secret_key=KEY))

"""Secrets of organizations at rest: sealed beside the plain ones, in place of them, and with another key."""

import psycopg
import pytest
from tests.support.run_async import run_async
from tests.support.waiting import wait_until

from regulars.kit import releases
from regulars.kit.db import Database
from regulars.kit.releases import MIGRATIONS, OutdatedReleaseError, ProcessRole
from regulars.kit.vault import Vault, VaultError, lock_key
from regulars.organizations import secret as organization_secret
from regulars.organizations.authenticate import Authenticator
from regulars.organizations.sealing import SEALED_SINCE
from regulars.processes import in_use

KEY = "a key of at least thirty-two characters"
NEW_KEY = "another key of at least thirty-two characters"


class CountingVault(Vault):
    """The real one, which also counts how often it opened something."""

    opened = 0

    def open(self, sealed: bytes, *, context: str) -> bytes:
        self.opened += 1
        return super().open(sealed, context=context)


def stored(url):
    with psycopg.connect(url, autocommit=True) as connection:
        rows = connection.execute("SELECT id, name, secret, sealed_secret FROM organizations").fetchall()
    return {name: (identifier, secret, sealed) for identifier, name, secret, sealed in rows}


def opened(url, name, key):
    identifier, _, sealed = stored(url)[name]
    return Vault(key).open(sealed, context=f"organization {identifier}")


@pytest.fixture
def sealed(regulars, database_url):
    """An organization that was made without a key, after `vault seal`; its secret from before."""
    regulars("organization", "create", "Shop")
    before = stored(database_url)["Shop"][1]
    ran = regulars("vault", "seal", REGULARS_SECRET_KEY=KEY)
    assert ran.code == 0, ran.err
    return before


def test_sealing_empties_the_plain_secret_and_keeps_its_value(sealed, regulars, database_url):
    assert stored(database_url)["Shop"][1] is None
    assert opened(database_url, "Shop", KEY) == sealed
    # Those that come after it are never plain, and none comes without the key.
    complaint = regulars("organization", "create", "Later").complains(code=2)
    assert Vault(KEY).fingerprint in complaint
    assert regulars("organization", "create", "Later", REGULARS_SECRET_KEY=KEY).code == 0
    assert stored(database_url)["Later"][1] is None
    assert len(opened(database_url, "Later", KEY)) == 32
    # What needs the secret says that the key is missing, and works with it.
    assert "REGULARS_SECRET_KEY" in regulars("message", "list", "-o", "Shop").complains(code=2)
    assert regulars("message", "list", "-o", "Shop", REGULARS_SECRET_KEY=KEY).code == 0
    assert "fingerprint" in regulars("serve", "--port", "0").complains(code=2)


def test_with_a_key_the_sealed_form_stands_beside_the_plain_one_until_then(regulars, database_url):
    regulars("organization", "create", "Shop")
    assert stored(database_url)["Shop"][2] is None
    # Any command that makes the key known to the database writes the sealed form too.
    regulars("webhook", "create", "-o", "Shop", "https://hooks.example/x", REGULARS_SECRET_KEY=KEY)
    regulars("organization", "create", "Later", REGULARS_SECRET_KEY=KEY)
    for name in ("Shop", "Later"):
        assert opened(database_url, name, KEY) == stored(database_url)[name][1]
    # A wrong key seals nothing.
    regulars("organization", "create", "Third", REGULARS_SECRET_KEY=NEW_KEY)
    assert stored(database_url)["Third"][2] is None


def test_sealing_is_refused_without_a_key_and_beside_an_older_release(regulars, database_url):
    regulars("organization", "create", "Shop")
    assert "REGULARS_SECRET_KEY" in regulars("vault", "seal").complains(code=2)
    for older in ("regulars in use", f"regulars in use {SEALED_SINCE - 1:04}"):
        with psycopg.connect(database_url, application_name=older):
            complaint = regulars("vault", "seal", REGULARS_SECRET_KEY=KEY).complains(code=1)
            assert "of an older release is connected" in complaint
    assert stored(database_url)["Shop"][1] is not None
    for other in ("", " -", f" {Vault(NEW_KEY).fingerprint}"):
        with psycopg.connect(database_url, application_name=f"regulars in use {releases.THIS_RELEASE:04}{other}"):
            complaint = regulars("vault", "seal", REGULARS_SECRET_KEY=KEY).complains(code=1)
            assert f"does not have the key {Vault(KEY).fingerprint}" in complaint
    assert stored(database_url)["Shop"][1] is not None
    with in_use.shared_lock(database_url) as presence:
        presence.publish_key_fingerprint(Vault(KEY).fingerprint)
        with psycopg.connect(database_url, autocommit=True) as connection:
            wait_until(lambda: in_use.list_processes(connection) == [(releases.THIS_RELEASE, Vault(KEY).fingerprint)])
        assert regulars("vault", "seal", REGULARS_SECRET_KEY=KEY).code == 0
    with psycopg.connect(database_url) as connection, pytest.raises(OutdatedReleaseError):
        releases.refuse_outdated(connection, ProcessRole.SERVER, release=SEALED_SINCE - 1)
    assert list(MIGRATIONS.glob(f"{SEALED_SINCE:04}_*.sql"))


def test_a_sealed_secret_is_opened_once_whatever_the_number_of_requests(sealed, regulars, database_url):
    key = regulars("key", "create", "-o", "Shop").out.strip().encode()
    counting = CountingVault(KEY)
    organization_secret.set_vault_finder(lambda: counting)

    async def ask() -> set[bytes]:
        database = Database(database_url, pool_max=2)
        authenticator = Authenticator(database)
        try:
            callers = [await authenticator.authenticate(key) for _ in range(20)]
            for _ in range(5):
                # As when its second is over.
                await authenticator._confirm([key])
            return {caller.secret for caller in callers}
        finally:
            await database.close()

    assert run_async(ask()) == {sealed}
    assert counting.opened == 1


def test_a_secret_that_cannot_be_opened_fails_only_its_own_organization(sealed, regulars, database_url):
    regulars("organization", "create", "Damaged", REGULARS_SECRET_KEY=KEY)
    good, bad = (regulars("key", "create", "-o", name).out.strip().encode() for name in ("Shop", "Damaged"))
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("UPDATE organizations SET sealed_secret = 'x' WHERE name = 'Damaged'")
    organization_secret.set_vault_finder(lambda: Vault(KEY))

    async def ask() -> bytes:
        database = Database(database_url, pool_max=2)
        authenticator = Authenticator(database)
        try:
            # As when both are busy, and their second is over.
            await authenticator._confirm([bad, good])
            with pytest.raises(VaultError):
                await authenticator.authenticate(bad)
            caller = authenticator.cached(good)
            return b"" if caller is None else caller.secret
        finally:
            await database.close()

    assert run_async(ask()) == sealed


def test_doctor_warns_until_the_secrets_are_sealed(regulars):
    regulars("organization", "create", "Shop")

    def finding(**variables):
        (one,) = [
            one for one in regulars("doctor", "--json", **variables).data if one["name"] == "organization secrets"
        ]
        return one["ok"], one["advice"]

    is_ok, advice = finding()
    assert (is_ok, "Set REGULARS_SECRET_KEY" in advice, "stolen backup" in advice) == (True, True, True)
    assert "warn organization secrets" in regulars("doctor").out
    assert "Run `regulars vault seal`" in finding(REGULARS_SECRET_KEY=KEY)[1]
    regulars("vault", "seal", REGULARS_SECRET_KEY=KEY)
    assert finding(REGULARS_SECRET_KEY=KEY) == (True, "")


def test_a_value_is_sealed_only_with_the_key_that_the_database_knows_then(sealed, database_url):
    async def lock(key: str) -> None:
        database = Database(database_url, pool_max=2, lock_timeout_ms=100)
        try:
            async with database.transaction() as tx:
                await lock_key(tx.connection, Vault(key))
        finally:
            await database.close()

    run_async(lock(KEY))
    with pytest.raises(VaultError, match=Vault(KEY).fingerprint):
        run_async(lock(NEW_KEY))
    with psycopg.connect(database_url) as rotating:
        rotating.execute("UPDATE vault_key SET created_at = now()")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            run_async(lock(KEY))


def test_rotating_seals_everything_with_the_new_key(sealed, regulars, database_url, tmp_path, monkeypatch):
    monkeypatch.setattr(in_use, "RESTORE_WAIT", "100ms")
    old, new = Vault(KEY), Vault(NEW_KEY)
    shop, _, _ = stored(database_url)["Shop"]
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO users (id, email, name, created_at, totp_secret) VALUES (%s, 'a@shop.example', 'A', now(), %s)",
            (shop, old.seal(b"factor", context=f"totp {shop}")),
        )
        connection.execute(
            "INSERT INTO sms_settings (organization_id, provider, settings, credentials, updated_at)"
            " VALUES (%s, 'twilio', '{}', %s, now())",
            (shop, old.seal(b"token", context=f"sms {shop}")),
        )
    regulars("webhook", "create", "-o", "Shop", "https://hooks.example/x", REGULARS_SECRET_KEY=KEY)
    assert "--new-key" in regulars("vault", "rotate", REGULARS_SECRET_KEY=KEY).complains(code=2)
    file = tmp_path / "new.key"
    file.write_text(NEW_KEY)
    file.chmod(0o600)
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("SELECT pg_advisory_lock_shared(7345112002)")
        ran = regulars("vault", "rotate", "--new-key", str(file), REGULARS_SECRET_KEY=KEY)
        assert "stop all of them" in ran.complains(code=1)
    ran = regulars("vault", "rotate", "--new-key", str(file), REGULARS_SECRET_KEY=KEY)
    assert (ran.code, f"Encrypted 4 secrets with the key {new.fingerprint}" in ran.err) == (0, True)
    assert opened(database_url, "Shop", NEW_KEY) == sealed
    with psycopg.connect(database_url) as connection:
        [(factor,)] = connection.execute("SELECT totp_secret FROM users").fetchall()
        [(token,)] = connection.execute("SELECT credentials FROM sms_settings").fetchall()
        [(endpoint, secret)] = connection.execute("SELECT id, secret FROM webhook_endpoints").fetchall()
    assert new.open(factor, context=f"totp {shop}") == b"factor"
    assert new.open(token, context=f"sms {shop}") == b"token"
    assert len(new.open(secret, context=f"webhook {endpoint}")) >= 24
    with pytest.raises(VaultError):
        old.open(secret, context=f"webhook {endpoint}")
    assert Vault(KEY).fingerprint in regulars("vault", "seal", REGULARS_SECRET_KEY=KEY).complains(code=2)
    assert regulars("vault", "seal", REGULARS_SECRET_KEY=NEW_KEY).code == 0

from uuid import uuid4

import psycopg

from regulars.kit import vault
from regulars.postgres import embedded

KEY = "a key of at least thirty-two characters"


def finding(ran):
    (one,) = [one for one in ran.data if one["name"] == "secret key"]
    return one


def test_doctor_compares_the_key_with_the_database_s(regulars):
    assert finding(regulars("doctor", "--json"))["ok"]
    assert finding(regulars("doctor", "--json", REGULARS_SECRET_KEY=KEY))["ok"]


def test_config_does_not_show_the_key(regulars):
    assert KEY not in regulars("config", REGULARS_SECRET_KEY=KEY).out


def test_a_backup_says_that_the_key_is_not_in_it_and_a_restore_which_key_serve_will_need(
    regulars, command, database_url, empty_database_url, tmp_path
):
    sealing = vault.Vault(KEY)
    with psycopg.connect(database_url, autocommit=True) as connection:
        vault.register_key(connection, sealing)
    file = str(tmp_path / "one.backup")
    assert "keep a copy of REGULARS_SECRET_KEY elsewhere" in regulars("backup", file).err
    said = command("restore", file, DATABASE_URL=empty_database_url, REGULARS_SECRET_KEY=KEY[::-1]).err
    assert f"`regulars serve` will need the secret key with the fingerprint {sealing.fingerprint}" in said
    assert "set REGULARS_SECRET_KEY to it" in said
    with_key = command("restore", "--force", file, DATABASE_URL=empty_database_url, REGULARS_SECRET_KEY=KEY)
    assert (with_key.code, "will need" in with_key.err) == (0, False)


def test_a_data_folder_asks_for_its_key_file_and_rotates_it(
    regulars, command, database_url, migrated_data_dir, tmp_path
):
    data_dir = migrated_data_dir
    regulars("organization", "create", "Shop")
    assert regulars("vault", "seal", REGULARS_SECRET_KEY=KEY).code == 0
    with psycopg.connect(database_url, autocommit=True) as connection:
        [(shop,)] = connection.execute("SELECT id FROM organizations").fetchall()
        erased = (shop, uuid4(), [b"hash"])
        connection.execute("INSERT INTO erasures_to_replay VALUES (%s, %s, %s, now(), true)", erased)
    file = str(tmp_path / "one.backup")
    assert regulars("backup", file).code == 0

    def run(*arguments):
        ran = command(*arguments, REGULARS_DATA_DIR=str(data_dir))
        assert ran.code == 0, ran.err
        return ran

    current, fresh = data_dir / "secret.key", data_dir / "secret.key.new"
    # Commands share it while it runs, which saves them starting and stopping it.
    with embedded.running(data_dir):
        restored = run("restore", "--force", file).err
        assert f"copy its secret.key into {data_dir}" in restored
        assert "`regulars serve` will erase the erased customers again" in restored
        assert "REGULARS_SECRET_KEY" in command("migrate", REGULARS_DATA_DIR=str(data_dir)).complains(code=2)
        current.write_text(KEY)
        current.chmod(0o600)
        assert "Erased 1 customer again" in run("vault", "rotate").err
        after = current.read_text()
        previous = data_dir / f"secret.key.{vault.Vault(KEY).fingerprint}"
        assert (previous.read_text(), after == KEY, fresh.exists()) == (KEY, False, False)
        # Killed between the commit and the files.
        current.rename(fresh)
        previous.rename(current)
        run("vault", "seal")
        assert (current.read_text(), previous.read_text(), fresh.exists()) == (after, KEY, False)

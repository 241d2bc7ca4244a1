"""Each migration from 0081 on says which releases may still run beside it."""

from regulars.kit.releases import MIGRATIONS, THIS_RELEASE, Limits

FIRST_WITH_LIMITS = 81


def test_every_migration_begins_with_the_oldest_server_and_worker():
    files = [file for file in MIGRATIONS.glob("[0-9]*.sql") if int(file.name[:4]) >= FIRST_WITH_LIMITS]
    assert files
    for file in files:
        limits = Limits.of_file(file.read_bytes())
        assert limits is not None, f"{file.name}: begin with `-- oldest server: NNNN` and `-- oldest worker: NNNN`"
        for number in (limits.server, limits.worker):
            assert number is not None
            assert FIRST_WITH_LIMITS - 1 <= number <= int(file.name[:4]), f"{file.name}: {number:04}"


def test_this_release_is_known_by_its_newest_migration():
    assert max(int(file.name[:4]) for file in MIGRATIONS.glob("[0-9]*.sql")) == THIS_RELEASE

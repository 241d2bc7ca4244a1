import os
import random
import subprocess
import sys
import time
from uuid import UUID

import pytest

from regulars.kit import ids
from regulars.kit.ids import PROFILE, SALES_EVENT, STORE, SUBSCRIPTION, ByExternalId, ById, read_reference

KINDS = (PROFILE, STORE, SUBSCRIPTION, SALES_EVENT)
LARGEST = UUID(int=2**128 - 1)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.noun)
def test_an_id_is_spelled_digit_by_digit_and_reads_back(kind):
    chance = random.Random(1)
    for number in (0, LARGEST.int, *(1 << bit for bit in range(128)), *(chance.getrandbits(128) for _ in range(500))):
        text = kind.encode(UUID(int=number))
        digits = "".join(ids.ALPHABET[number >> 5 * place & 31] for place in reversed(range(26)))
        assert text == kind.prefix + digits
        assert kind.decode(text) == UUID(int=number)
        assert read_reference(kind, text) == ById(UUID(int=number))


def test_an_id_is_written_as_the_typeid_specification_writes_it():
    known = UUID("01890a5d-ac96-774b-bcce-b302099a8057")
    assert PROFILE.encode(known) == "prof_01h455vb4pex5vsknk084sn02q"
    assert PROFILE.encode(LARGEST) == "prof_7zzzzzzzzzzzzzzzzzzzzzzzzz"


@pytest.mark.parametrize(
    "text",
    [
        "prof_",
        "prof_x",
        "prof_8zzzzzzzzzzzzzzzzzzzzzzzzz",  # one bit more than a UUID has
        "prof_01h455vb4pex5vsknk084sn02",
        "prof_01h455vb4pex5vsknk084sn02qq",
        "prof_01H455VB4PEX5VSKNK084SN02Q",
        "prof_01h455vb4pex5vsknk084sn0il",  # letters the alphabet leaves out
        "prof_01h455vb4pex5vsknk084sn02\x00",
        "prof_prof_01h455vb4pex5vsknk084sn02q",
    ],
)
def test_a_malformed_id_refers_to_nothing(text):
    assert PROFILE.decode(text) is None
    assert read_reference(PROFILE, text) == ById(None)


def test_an_id_of_another_kind_refers_to_nothing():
    for kind in KINDS:
        for other in KINDS:
            meant = read_reference(kind, other.encode(LARGEST))
            assert meant == ById(LARGEST if kind is other else None)


@pytest.mark.parametrize(
    "text", ["PROF_x", "profile_1", "prof", "org_1", "key_1", " prof_x", "01h455vb4pex5vsknk084sn02q"]
)
def test_only_the_four_prefixes_are_reserved_and_in_lower_case(text):
    assert read_reference(PROFILE, text) == ByExternalId(text)


def test_new_ids_sort_as_they_were_made_and_carry_the_time():
    before = time.time_ns() // 1_000_000
    made = []
    for _ in range(20):
        made.append(ids.new_uuid())
        time.sleep(0.0001)
    after = time.time_ns() // 1_000_000
    assert made == sorted(made)
    assert [SALES_EVENT.encode(identifier) for identifier in made] == sorted(map(SALES_EVENT.encode, made))
    assert all(before <= identifier.int >> 80 <= after for identifier in made)
    assert {identifier.version for identifier in made} == {7}
    assert {identifier.variant for identifier in made} == {"specified in RFC 4122"}


@pytest.mark.parametrize("count", [0, 1, 2, 31, 32, 33, 500])
def test_many_ids_are_spelled_as_each_alone(count):
    chance = random.Random(count)
    many = [UUID(int=chance.getrandbits(128)) for _ in range(count)]
    assert STORE.encode_all([identifier.bytes for identifier in many]) == [
        STORE.encode(identifier) for identifier in many
    ]


@pytest.mark.parametrize("fraction_ns", [0, 1, 500_000, 999_999])
def test_ids_made_together_sort_in_their_order_and_keep_their_millisecond(monkeypatch, fraction_ns):
    monkeypatch.setattr(time, "time_ns", lambda: 1_700_000_000_123 * 1_000_000 + fraction_ns)
    made = [UUID(bytes=identifier) for identifier in ids.new_uuids(ids.NEW_UUIDS_MAX)]
    assert made == sorted(made)
    assert len(set(made)) == len(made)
    assert {identifier.int >> 80 for identifier in made} == {1_700_000_000_123}
    assert {(identifier.version, identifier.variant) for identifier in made} == {(7, "specified in RFC 4122")}
    with pytest.raises(ValueError, match="at most 4096"):
        ids.new_uuids(ids.NEW_UUIDS_MAX + 1)


def test_ids_made_in_a_hurry_do_not_repeat():
    assert len({ids.new_uuid() for _ in range(20_000)}) == 20_000


def test_a_fork_does_not_give_the_request_ids_of_its_parent_again():
    program = "import os; from regulars.kit import ids; os.fork(); os.write(1, (ids.new_request_id() + ' ').encode())"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", program]
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=60)
    assert len(set(printed.stdout.split())) == 2

"""Search for customers: the beginning of either name, any id, a number."""

import pytest

from regulars.kit.ids import PROFILE
from regulars.kit.keyset import PageRequest
from regulars.profiles.model import Phone, ProfileUpsert
from regulars.profiles.search import count_profiles, list_newest, search_by_name, search_exactly
from regulars.profiles.write import upsert_profiles

pytestmark = pytest.mark.anyio
PEOPLE = [
    ProfileUpsert(external_id="C-1", first_name="Odile", last_name="Fictive", phone=Phone("+33639984107", True)),
    ProfileUpsert(external_id="C-2", first_name="Élise", last_name="Inventée"),
    ProfileUpsert(external_id="C-3", first_name="Jean-Pierre", last_name="O’Neill"),
    ProfileUpsert(external_id="C-4", first_name="ﷺ" * 64, last_name="𝔉raktur" * 100),
    ProfileUpsert(external_id="C-5", last_name="Élise"),
    ProfileUpsert(external_id="C-6", first_name="Élise", last_name="Élise"),
    ProfileUpsert(external_id="C-7"),
    ProfileUpsert(external_id="C-8", first_name="100%", last_name="_x\\"),
]


@pytest.fixture
async def people(database, organization_id):
    async with database.transaction() as tx:
        await upsert_profiles(tx, organization_id, PEOPLE)


async def found(database, organization_id, text):
    async with database.reading() as tx:
        hits = await search_by_name(tx, organization_id, text, PageRequest(50))
    return [hit.profile.external_id for hit in hits]


@pytest.mark.usefixtures("people")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("odi", ["C-1"]),
        ("FICT", ["C-1"]),
        ("Fictive Odile", ["C-1"]),
        ("odile fic", ["C-1"]),
        ("elise", ["C-5", "C-6", "C-2"]),
        ("ÉLISE", ["C-5", "C-6", "C-2"]),
        ("E\u0301lise", ["C-5", "C-6", "C-2"]),
        ("jean pierre", ["C-3"]),
        ("o'neill", ["C-3"]),
        ("%", []),
        ("_", ["C-8"]),
        ("100%", ["C-8"]),
        ("", []),
        ("   ", []),
        ("\0", []),
        ("dile", []),
    ],
)
async def test_names_are_found_by_their_beginning(database, organization_id, text, expected):
    assert await found(database, organization_id, text) == expected


@pytest.mark.usefixtures("people")
async def test_a_walk_by_name_goes_forward_and_back(database, organization_id):
    async with database.reading() as tx:
        first = await search_by_name(tx, organization_id, "elise", PageRequest(2))
        rest = await search_by_name(tx, organization_id, "elise", PageRequest(2, first[-1].position))
        back = await search_by_name(tx, organization_id, "elise", PageRequest(2, rest[0].position, is_backward=True))
    assert [hit.profile.external_id for hit in first + rest] == ["C-5", "C-6", "C-2"]
    assert [hit.profile.external_id for hit in reversed(back)] == ["C-5", "C-6"]


@pytest.mark.usefixtures("people")
async def test_an_id_or_a_number_means_one_customer(database, organization_id):
    async def exactly(text, *, sees_personal=True):
        async with database.reading() as tx:
            hits = await search_exactly(tx, organization_id, text, default_country="FR", sees_personal=sees_personal)
        return [profile.external_id for profile in hits]

    async with database.reading() as tx:
        [newest] = await list_newest(tx, organization_id, PageRequest(1))
    canonical = PROFILE.encode(newest.profile.id)
    assert await exactly("C-1") == ["C-1"]
    assert await exactly("06 39 98 41 07") == await exactly("+33639984107") == ["C-1"]
    assert await exactly(canonical) == await exactly(canonical, sees_personal=False) == [newest.profile.external_id]
    assert await exactly("prof_nonsense") == await exactly("nobody") == await exactly("a\0b") == []
    # A user who sees no personal data cannot try out numbers and ids either.
    assert await exactly("C-1", sees_personal=False) == await exactly("+33639984107", sees_personal=False) == []


@pytest.mark.usefixtures("people")
async def test_all_customers_are_listed_newest_first_and_counted_up_to_a_cap(database, organization_id):
    async with database.reading() as tx:
        first = await list_newest(tx, organization_id, PageRequest(3))
        back = await list_newest(tx, organization_id, PageRequest(3, first[2].position, is_backward=True))
        assert await count_profiles(tx, organization_id, count_max=5) == 5
        assert await count_profiles(tx, organization_id, count_max=50) == 8
        everyone = await list_newest(tx, organization_id, PageRequest(50))
    assert [hit.profile.id for hit in everyone] == sorted((hit.profile.id for hit in everyone), reverse=True)
    assert first == everyone[:3]
    assert back[::-1] == everyone[:2]


async def test_another_organization_s_customers_are_not_found(database, organization_id, people):
    other = PROFILE.decode("prof_01h455vb4pex5vsknk084sn02q")
    assert await found(database, other, "odi") == []

from tests.support import third_party


def test_the_list_of_other_people_s_work_is_up_to_date():
    assert third_party.FILE.read_text() == third_party.document(), "run bin/third-party"


def test_every_carried_folder_has_its_licence():
    for folder in (third_party.PACKAGE / "vendor").iterdir():
        if folder.is_dir() and folder.name[0] not in "._":
            assert list(folder.glob("LICENSE*")), folder.name

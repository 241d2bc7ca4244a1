KEY = "a key of at least thirty-two characters"


def finding(ran):
    (one,) = [one for one in ran.data if one["name"] == "secret key"]
    return one


def test_doctor_compares_the_key_with_the_database_s(regulars):
    assert finding(regulars("doctor", "--json"))["ok"]
    assert finding(regulars("doctor", "--json", REGULARS_SECRET_KEY=KEY))["ok"]


def test_config_does_not_show_the_key(regulars):
    assert KEY not in regulars("config", REGULARS_SECRET_KEY=KEY).out


def test_a_backup_says_that_the_key_is_not_in_it(regulars, tmp_path):
    assert "keep a copy of REGULARS_SECRET_KEY elsewhere" in regulars("backup", str(tmp_path / "one.backup")).err

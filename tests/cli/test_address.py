def test_the_command_sets_the_address_that_links_begin_with_and_the_environment_wins(command, shop_database_url):
    def shop(*arguments: str, **variables: str):
        return command(*arguments, DATABASE_URL=shop_database_url, **variables)

    def invited(**variables: str) -> str:
        return shop("user", "create", "ann@shop.example", "--organization", "Shop", **variables).out

    assert shop("address", "show", "--json").data["source"] == "default"
    stored = shop("address", "set", "http://127.0.0.1:1/")
    assert "Stored http://127.0.0.1:1. The server does not answer there yet" in stored.err
    assert shop("address", "show", "--json").data == {"address": "http://127.0.0.1:1", "source": "database"}
    assert invited().startswith("http://127.0.0.1:1/link/")
    fixed = {"REGULARS_PUBLIC_URL": "https://regulars.example.com"}
    assert invited(**fixed).startswith("https://regulars.example.com/link/")
    assert "REGULARS_PUBLIC_URL is set here and wins" in shop("address", "clear", **fixed).err
    assert shop("address", "show", "--json").data["source"] == "default"
    for wrong in ("regulars.example.com", "ftp://regulars.example.com", "https://a@b.example", "https://x:99999"):
        assert "must be an address like" in shop("address", "set", wrong).complains(code=2)

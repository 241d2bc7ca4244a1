from regulars.kit.bounded_cache import BoundedCache


def full_cache() -> BoundedCache[str, int]:
    cache = BoundedCache[str, int](3)
    for number, key in enumerate("abc"):
        cache.add(key, number)
    return cache


def test_a_new_entry_drops_the_one_that_was_added_first():
    cache = full_cache()
    assert cache.add("d", 3) == 3
    assert list(cache.entries.items()) == [("b", 1), ("c", 2), ("d", 3)]


def test_an_entry_that_was_found_or_added_again_stays():
    cache = full_cache()
    assert cache.find("a") == 0
    cache.add("b", 10)
    cache.add("d", 3)
    assert list(cache.entries.items()) == [("a", 0), ("b", 10), ("d", 3)]


def test_an_entry_that_was_only_read_goes_in_its_turn():
    cache = full_cache()
    assert cache.entries.get("a") == 0
    cache.add("d", 3)
    assert "a" not in cache.entries
    assert cache.entries.get("a") is None
    assert cache.find("a") is None


def test_a_value_is_computed_when_it_is_missing_only():
    cache = full_cache()
    assert cache.find_or_add("a", lambda: 1 // 0) == 0
    assert cache.find_or_add("d", lambda: 3) == 3
    assert "b" not in cache.entries


def test_a_dropped_entry_makes_room():
    cache = full_cache()
    cache.drop("c")
    cache.drop("unknown")
    cache.add("d", 3)
    assert list(cache.entries) == ["a", "b", "d"]


def test_a_limit_may_count_what_a_value_takes():
    cache = BoundedCache[int, bytes](1_000, bytes_of=len)
    for number in range(20):
        cache.add(number, bytes(400 if number % 2 else 300))
        assert cache.nbytes == sum(len(value) for _, value in cache.entries.items()) <= 1_000
    assert list(cache.entries) == [18, 19]
    cache.add(19, bytes(10))
    assert cache.nbytes == 310
    assert cache.drop_oldest(1) == 300
    assert cache.nbytes == 10


def test_entries_are_dropped_until_enough_is_free():
    cache = BoundedCache[int, bytes](1_000, bytes_of=len)
    for number in range(10):
        cache.add(number, bytes(100))
    assert cache.drop_oldest(250) == 300
    assert list(cache.entries) == [3, 4, 5, 6, 7, 8, 9]
    assert cache.drop_oldest(5_000) == 700
    assert cache.nbytes == 0


def test_a_value_above_the_limit_stays_alone():
    cache = BoundedCache[int, bytes](1_000, bytes_of=len)
    cache.add(1, bytes(10))
    cache.add(2, bytes(5_000))
    assert list(cache.entries) == [2]
    cache.clear()
    assert (len(cache), cache.nbytes) == (0, 0)

"""The embedded server takes its share of the memory, within bounds, and knows the limit of a container."""

import pytest

from regulars.postgres.memory import MEBIBYTE, available_bytes, shared_buffers


@pytest.mark.parametrize(
    ("memory", "setting"), [(256, "128MB"), (1024, "128MB"), (2048, "256MB"), (8192, "1024MB"), (65536, "1024MB")]
)
def test_an_eighth_of_the_memory_within_bounds(memory, setting):
    assert shared_buffers(memory * MEBIBYTE) == setting


def test_the_smallest_limit_counts(tmp_path):
    whole = available_bytes(())
    files = {"none": "max\n", "odd": "\xff", "huge": f"{whole * 2}\n", "small": f"{512 * MEBIBYTE}\n"}
    for name, text in files.items():
        (tmp_path / name).write_text(text, "latin-1")
    unlimited = (tmp_path / "none", tmp_path / "odd", tmp_path / "huge", tmp_path / "missing")
    assert available_bytes(unlimited) == whole
    assert available_bytes((*unlimited, tmp_path / "small")) == 512 * MEBIBYTE

"""A block of memory that processes share: made by their parent, handed on as a file descriptor, gone with the last.

Nothing locks it. Whoever keeps numbers in it must be content with a write that another process overtook, and need not
care about a process that died.
"""

import mmap
import os
import tempfile

BLOCK_BYTES = 1 << 20


def new_block() -> int:
    """The descriptor of a block of zeros that no path leads to."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("regulars")
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.truncate(descriptor, BLOCK_BYTES)
    return descriptor


def map_block(descriptor: int | None) -> memoryview:
    """The block of this descriptor; without one, a block that only this process has."""
    return memoryview(mmap.mmap(-1 if descriptor is None else descriptor, BLOCK_BYTES))

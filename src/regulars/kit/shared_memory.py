"""A block of memory that processes share: their parent creates it and passes its file descriptor on.

It has no lock: a write may be overwritten by another process, and a process that dies leaves nothing locked.
"""

import mmap
import os
import tempfile

BLOCK_BYTES = 1 << 20


def new_block() -> int:
    """The file descriptor of a new block of zeros without a path."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("regulars")
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.truncate(descriptor, BLOCK_BYTES)
    return descriptor


def map_block(descriptor: int | None) -> memoryview:
    """The block of this file descriptor; without a descriptor, a new block that only this process uses."""
    return memoryview(mmap.mmap(-1 if descriptor is None else descriptor, BLOCK_BYTES))

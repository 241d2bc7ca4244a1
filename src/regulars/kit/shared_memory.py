"""A block of memory that several processes share: their parent creates it and passes its file descriptor on.

The block has no lock: one process may overwrite the write of another, but a process that dies leaves nothing locked.
"""

import mmap
import os
import tempfile

BLOCK_BYTES = 1 << 20


def new_block() -> int:
    """Create a block of zeros that has no path; return its file descriptor."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("regulars")
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.truncate(descriptor, BLOCK_BYTES)
    return descriptor


def map_block(descriptor: int | None) -> memoryview:
    """Map the block of a file descriptor into memory; without a descriptor, a new block for this process only."""
    return memoryview(mmap.mmap(-1 if descriptor is None else descriptor, BLOCK_BYTES))

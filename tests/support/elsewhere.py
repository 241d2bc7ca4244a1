"""Commands that see the same files and no other processes, as in another container with the same volume."""

import os
import shutil
import subprocess

import pytest

ELSEWHERE = ("unshare", "--pid", "--ipc", "--fork", "--mount-proc", "--kill-child")
needs_elsewhere = pytest.mark.skipif(
    os.geteuid() != 0
    or shutil.which("unshare") is None
    or subprocess.run([*ELSEWHERE, "true"], check=False, capture_output=True).returncode != 0,
    reason="only root, and only where the kernel allows it, can start a process that sees no others",
)

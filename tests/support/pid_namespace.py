"""Starts commands in a new PID namespace: same files, other processes invisible, as in a second container on one volume."""

import os
import shutil
import subprocess

import pytest

NEW_PID_NAMESPACE = ("unshare", "--pid", "--ipc", "--fork", "--mount-proc", "--kill-child")
needs_pid_namespace = pytest.mark.skipif(
    os.geteuid() != 0
    or shutil.which("unshare") is None
    or subprocess.run([*NEW_PID_NAMESPACE, "true"], check=False, capture_output=True).returncode != 0,
    reason="a new PID namespace needs root and a kernel that allows it",
)

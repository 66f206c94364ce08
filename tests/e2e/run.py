"""Runs the end-to-end tests with pytest in the repository's Python environment; started by ctest.

  run.py BINARY PLUGINS [pytest arguments]

Exits with 77, which ctest shows as skipped, and says why when the environment or the model is missing.
"""

import os
import pathlib
import subprocess
import sys

import harness

SKIPPED = 77


def main():
    binary, plugins, *arguments = sys.argv[1:]
    python = harness.ROOT / ".venv/bin/python"
    for what, path in (("Python environment", python), ("model", harness.MODEL), ("program", binary)):
        if not pathlib.Path(path).exists():
            print(f"skipped: the {what} {path} is missing; scripts/setup gets it")
            return SKIPPED
    environment = dict(os.environ, CAIRN_E2E_BINARY=binary, CAIRN_E2E_PLUGINS=plugins)
    here = pathlib.Path(__file__).resolve().parent
    command = [str(python), "-B", "-m", "pytest", "-p", "no:cacheprovider", "-q", "--durations=5", *arguments, str(here)]
    return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())

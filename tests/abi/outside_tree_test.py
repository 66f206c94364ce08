"""Builds the plugins of docs/write-a-plugin.md in a folder of their own against the installed package, as a stranger would.

    outside_tree_test.py <source tree> <build tree> <work folder> <generator>
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


source, build, work, generator = Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4]
shutil.rmtree(work, ignore_errors=True)
project = work / "project"
project.mkdir(parents=True)

# The listings are introduced by a line that holds nothing but the file's name in backquotes.
page = (source / "docs/write-a-plugin.md").read_text(encoding="utf-8")
listings = dict(re.findall(r"^`([\w.]+)`\n```\w+\n(.*?)^```$", page, re.M | re.S))
missing = {"CMakeLists.txt", "shout.c", "rot13.cpp", "serve.yaml"} - listings.keys()
if missing:
    sys.exit(f"docs/write-a-plugin.md has no listing of {sorted(missing)}")
for name, text in listings.items():
    (project / name).write_text(text, encoding="utf-8")

run("cmake", "--install", build, "--prefix", work / "cairn", "--component", "plugin_api")
run("cmake", "-S", project, "-B", project / "build", "-G", generator, f"-DCMAKE_PREFIX_PATH={work / 'cairn'}",
    "-DCMAKE_C_FLAGS=-Wall -Wextra -Werror", "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror -Wno-unused-parameter")
run("cmake", "--build", project / "build")
for name in ("shout", "rot13"):
    library = project / "build/plugins" / f"{name}.so"
    if not library.is_file():
        sys.exit(f"{library} was not built")
    if f"com.example.{name}" not in run("strings", library):
        sys.exit(f"{library} does not carry its identity")

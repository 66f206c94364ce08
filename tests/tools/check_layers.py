"""Fails when an include breaks the layers: plugin_api and kernels at the bottom, core on them, host on core, plugins on
plugin_api only. Run by ctest; by hand: python3 tests/tools/check_layers.py [root].
"""

import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
SUFFIXES = {".c", ".h", ".cpp", ".hpp", ".cu", ".cuh"}
TREE = ("plugin_api/", "kernels/", "core/", "host/", "plugins/", "tests/", "cairn/")
NETWORK = ("boost/asio", "boost/beast", "openssl/", "boost/url")
TORCH = ("torch/", "ATen/", "c10/")


def from_standard(name):
    """Standard and system headers have no folder, or one of the system's."""
    return "/" not in name or name.startswith(("sys/", "linux/", "bits/"))


def problem(layer, path, name):
    """Why a file of `layer` may not include `name`, or None."""
    in_tree = name.startswith(TREE)
    if layer == "plugin_api":
        if in_tree and not name.startswith("cairn/") or not in_tree and not from_standard(name):
            return "plugin_api depends on nothing but libc and libstdc++"
    elif layer == "kernels":
        if in_tree and not name.startswith("kernels/") or not in_tree and not from_standard(name):
            return "kernels know only kernels and the standard library"
    elif layer == "core":
        if in_tree and not name.startswith(("core/", "kernels/")) and name != "cairn/abi.h":
            return "core depends on cairn/abi.h and kernels only"
        if name.startswith(NETWORK):
            return "core knows no HTTP and no network"
        if name.startswith(TORCH):
            return "libtorch is for plugins only"
    elif layer == "host":
        if in_tree and not name.startswith(("host/", "core/", "kernels/")) and name != "cairn/abi.h":
            return "host depends on core"
        if name.startswith(TORCH):
            return "libtorch is for plugins only"
    elif layer == "plugins":
        own = "/".join(path.split("/")[:2]) + "/"
        if in_tree and not name.startswith(("cairn/", own)):
            return "a plugin sees plugin_api and its own folder only"
        if not in_tree and not from_standard(name) and not name.startswith(TORCH):
            return "a plugin depends on plugin_api, the standard library and, where it says so, libtorch"
    return None


def check(root):
    """Every forbidden include as 'file:line: text'."""
    found = []
    for layer in ("plugin_api", "kernels", "core", "host", "plugins"):
        for file in sorted((root / layer).rglob("*")):
            if file.suffix not in SUFFIXES:
                continue
            path = file.relative_to(root).as_posix()
            for number, line in enumerate(file.read_text(errors="replace").split("\n"), 1):
                match = INCLUDE.match(line)
                if not match:
                    continue
                name = match.group(2)
                # A neighbour by its bare name: resolve it, so that "../core/x.hpp" is seen as what it is.
                if match.group(1) == '"' and not name.startswith(TREE):
                    neighbour = (file.parent / name).resolve()
                    if neighbour.is_relative_to(root):
                        name = neighbour.relative_to(root).as_posix().removeprefix("plugin_api/include/")
                why = problem(layer, path, name)
                if why:
                    found.append(f"{path}:{number}: {line.strip()} - {why}")
    return found


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]).resolve()
    found = check(root)
    for line in found:
        print(line)
    print(f"{len(found)} includes break the layers")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

"""clang-format and clang-tidy over the tree. Used by run_tests.py; `python3 scripts/lint.py` runs both by itself.

clang-tidy needs the compile commands of build/release. A file is checked again only when it, a header of ours it
includes, its flags or the configuration changed: build/lint holds one empty file per clean result, named by a hash.
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RELEASE = ROOT / "build/release"
CACHE = ROOT / "build/lint"
FORMATTED = ("plugin_api", "kernels", "core", "host", "plugins", "tests")
SUFFIXES = {".c", ".h", ".cpp", ".hpp"}
# Tests are left out: their framework's macros set off most checks.
TIDIED = ("kernels/", "core/", "host/")


def tool(name):
    return shutil.which(f"{name}-14") or shutil.which(name) or name


def sources():
    """Every C and C++ file of the layers, build output and the like excluded by their being elsewhere."""
    files = (path for layer in FORMATTED for path in (ROOT / layer).rglob("*") if path.suffix in SUFFIXES)
    return sorted(str(path.relative_to(ROOT)) for path in files)


def laid_out_by_hand(path):
    """A file whose head says "clang-format off" is left alone as a whole."""
    with (ROOT / path).open(errors="replace") as file:
        return "clang-format off" in file.read(2000)


def check_format():
    """Whether every source is laid out as .clang-format says; prints those that are not."""
    files = [path for path in sources() if not laid_out_by_hand(path)]
    result = subprocess.run([tool("clang-format"), "--dry-run", "--Werror", *files], cwd=ROOT, capture_output=True,
                            text=True, check=False)
    if result.returncode != 0:
        wrong = sorted({line.split(":")[0] for line in result.stderr.split("\n") if "clang-format-violations" in line})
        print("Not formatted, run clang-format -i on:", *wrong, sep="\n  ")
        if not wrong:
            print(result.stderr)
    return result.returncode == 0


def headers_by_object():
    """The headers of this tree that each object file was built from, as ninja recorded them."""
    listed = subprocess.run(["ninja", "-C", str(RELEASE), "-t", "deps"], capture_output=True, text=True, check=True).stdout
    result = {}
    current = None
    for line in listed.split("\n"):
        if line and not line.startswith(" "):
            current = result.setdefault(line.split(":")[0], [])
        elif line.strip() and current is not None:
            path = os.path.normpath(os.path.join(RELEASE, line.strip()))
            if path.startswith(str(ROOT) + os.sep) and not path.startswith(str(RELEASE)):
                current.append(path)
    return result


def object_of(entry):
    """The object file that a compile command writes."""
    match = re.search(r" -o (\S+)", entry["command"])
    return match.group(1) if match else ""


def digest_of(path, known={}):
    if path not in known:
        known[path] = hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()
    return known[path]


def key_of(entry, headers, base):
    digest = hashlib.sha256(base)
    digest.update(entry["command"].replace(str(ROOT), "").encode())
    for path in sorted({entry["file"], *headers}):
        digest.update(os.path.relpath(path, ROOT).encode())
        digest.update(digest_of(path).encode())
    return digest.hexdigest()


def tidy(entry):
    """The complaints about one source, or an empty string."""
    result = subprocess.run(["nice", tool("clang-tidy"), "-p", str(RELEASE), "--quiet",
                             "--extra-arg=-Wno-unknown-warning-option",
                             "--extra-arg=-Qunused-arguments", entry["file"]], cwd=ROOT, capture_output=True, text=True,
                            check=False)
    return "" if result.returncode == 0 else (result.stdout + result.stderr)


def check_tidy():
    """Whether clang-tidy is content with every source outside of tests/."""
    commands = json.loads((RELEASE / "compile_commands.json").read_text())
    version = subprocess.run([tool("clang-tidy"), "--version"], capture_output=True, check=True).stdout
    base = version + (ROOT / ".clang-tidy").read_bytes()
    headers = headers_by_object()
    CACHE.mkdir(parents=True, exist_ok=True)
    pending = []
    used = set()
    for entry in commands:
        path = os.path.relpath(entry["file"], ROOT)
        if not path.startswith(TIDIED):
            continue
        key = key_of(entry, headers.get(object_of(entry), []), base)
        used.add(key)
        if not (CACHE / key).exists():
            pending.append((path, key, entry))
    print(f"clang-tidy: {len(pending)} of {len(used)} files to check", flush=True)
    clean = True
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        for (path, key, _), complaints in zip(pending, pool.map(lambda item: tidy(item[2]), pending)):
            if complaints:
                clean = False
                print(f"clang-tidy: {path}\n{complaints}", flush=True)
            else:
                (CACHE / key).touch()
    for stale in CACHE.iterdir():
        if stale.name not in used:
            stale.unlink()
    return clean


def main():
    formatted = check_format()
    return 0 if check_tidy() and formatted else 1


if __name__ == "__main__":
    sys.exit(main())

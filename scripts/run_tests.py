"""Builds and runs all tests, one stage after the other, and prints one closing line. Called by scripts/test.

A stage that cannot be built counts as one failure and the others still run. Output of passing tests stays in the logs
under build/; output of failing ones is shown.
"""

import argparse
import concurrent.futures
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree

import lint

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
FUZZ_SECONDS = 60
# More than this is shown of no failing command.
SHOWN_CHARACTERS = 20_000


class Tally:
    """What passed and failed so far."""

    def __init__(self):
        self.passed = 0
        self.failures = []

    def add(self, name, ok):
        if ok:
            self.passed += 1
        else:
            self.failures.append(name)
            print(f"FAILED  {name}", flush=True)


def run(command, log, **options):
    """Runs a command with its output in a log file; returns whether it succeeded."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as out:
        return subprocess.run(command, cwd=ROOT, stdout=out, stderr=subprocess.STDOUT, check=False, **options).returncode == 0


def show(log):
    text = log.read_text(errors="replace")
    print(text[-SHOWN_CHARACTERS:], flush=True)


def build(preset, tally):
    folder = BUILD / preset
    log = folder / "build.log"
    ok = (folder / "build.ninja").exists() or run(["cmake", "--preset", preset], log)
    ok = ok and run(["nice", "cmake", "--build", "--preset", preset], log)
    tally.add(f"{preset}: build", ok)
    if not ok:
        show(log)
    return ok


def run_ctest(preset, tally):
    """Every test of one build. Each ctest entry counts."""
    folder = BUILD / preset
    report = folder / "tests.xml"
    report.unlink(missing_ok=True)
    command = ["ctest", "--test-dir", str(folder), "--output-junit", str(report), "--output-on-failure", "-j2", "--timeout", "1200"]
    if preset == "tsan":
        command = without_address_randomisation() + command
    log = folder / "tests.log"
    environment = dict(os.environ)
    environment["PATH"] = f"{ROOT / '.venv/bin'}:{environment['PATH']}"
    environment.setdefault("ASAN_OPTIONS", "detect_stack_use_after_return=1:strict_string_checks=1")
    environment.setdefault("UBSAN_OPTIONS", "print_stacktrace=1")
    environment.setdefault("TSAN_OPTIONS", "halt_on_error=1:second_deadlock_stack=1")
    ok = run(command, log, env=environment)
    if not report.exists():
        show(log)
        return tally.add(f"{preset}: ctest wrote no report", False)
    for case in xml.etree.ElementTree.parse(report).getroot().iter("testcase"):
        # A test whose program is missing is "notrun" too, but was not skipped by itself.
        skipped = case.find("skipped")
        if skipped is not None and skipped.get("message", "").startswith(("SKIP_", "Disabled")):
            print(f"skipped {preset}: {case.get('name')}", flush=True)
            continue
        tally.add(f"{preset}: {case.get('name')}", case.get("status") == "run")
    if not ok:
        show(log)


def without_address_randomisation():
    """gcc 12's thread sanitizer cannot map its shadow memory where newer kernels put libraries."""
    prefix = ["setarch", platform.machine(), "--addr-no-randomize"]
    if shutil.which("setarch") and subprocess.run(prefix + ["true"], capture_output=True, check=False).returncode == 0:
        return prefix
    return []


def fuzz_one(target):
    """Runs one libFuzzer target on its corpus for FUZZ_SECONDS. New inputs stay under build/, crashes too."""
    folder = BUILD / "fuzz" / "runs" / target.name
    work = folder / "corpus"
    work.mkdir(parents=True, exist_ok=True)
    seeds = ROOT / "tests/fuzz/corpus" / target.name.removeprefix("fuzz_")
    command = [str(target), f"-max_total_time={FUZZ_SECONDS}", "-timeout=10", "-rss_limit_mb=2048", "-print_final_stats=1",
               f"-artifact_prefix={folder}/", str(work)]
    if seeds.is_dir():
        command.append(str(seeds))
    return run(command, folder / "log.txt")


def fuzz(tally):
    if not build("fuzz", tally):
        return
    targets = sorted(path for path in (BUILD / "fuzz" / "fuzz").iterdir() if path.is_file() and os.access(path, os.X_OK))
    tally.add("fuzz: there are targets", bool(targets))
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        for target, ok in zip(targets, pool.map(fuzz_one, targets)):
            tally.add(f"fuzz: {target.name}", ok)
            if not ok:
                show(BUILD / "fuzz" / "runs" / target.name / "log.txt")


def check_lint(tally, quick):
    tally.add("lint: clang-format", lint.check_format())
    if not quick:
        tally.add("lint: clang-tidy", lint.check_tidy())


def stage(name, body, *arguments):
    start = time.monotonic()
    print(f"== {name}", flush=True)
    body(*arguments)
    print(f"   {name} took {time.monotonic() - start:.0f} s", flush=True)


def build_and_test(preset, tally):
    if build(preset, tally):
        run_ctest(preset, tally)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only the optimised build's tests and the format check")
    options = parser.parse_args()
    tally = Tally()
    stage("release: build and test", build_and_test, "release", tally)
    stage("lint", check_lint, tally, options.quick)
    if not options.quick:
        stage("asan: build and test", build_and_test, "asan", tally)
        stage("tsan: build and test", build_and_test, "tsan", tally)
        stage("fuzz", fuzz, tally)
    for name in tally.failures:
        print(f"failed: {name}")
    print(f"{tally.passed} passed, {len(tally.failures)} failed", flush=True)
    return 1 if tally.failures else 0


if __name__ == "__main__":
    sys.exit(main())

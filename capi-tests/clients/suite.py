"""Runs a program's own test suite in parts, each in processes of its own, and compares the outcomes with a record.

    suite.py --root DIR --record FILE [--write] [--jobs N] pytest [--deselect TEST] FILE...
    suite.py --root DIR --record FILE [--write] [--jobs N] unittest MODULE

A part is a test file for pytest, and for unittest a member of what MODULE.suite() returns. The process of a part notes
each outcome as it happens; a test that kills its process or hangs is `crashed`, and the next process goes on behind it.

A record has a line per part with the number of each outcome, then a line for each test that neither passed nor was
skipped; lines with # are comments. A part that gives something else, even one test less, fails the run; in a part that is
not recorded all must pass. `--write` writes the record instead: for the C library. `--only TEXT` limits either to the parts
with TEXT in their names.
"""

import argparse
import collections
import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
SECONDS_PER_TEST = 180
SECONDS_PER_PROCESS = 3600


class Pytest:
    """The files of a pytest suite."""

    def __init__(self, root, arguments):
        parser = argparse.ArgumentParser(prog="suite.py ... pytest")
        parser.add_argument("--deselect", action="append", default=[])
        parser.add_argument("files", nargs="+")
        arguments = parser.parse_args(arguments)
        self.root, self.parts, self.deselected = root, arguments.files, arguments.deselect

    def command(self, part, work):
        """Runs one file, with the settings of the suite except for its choice of workers."""
        command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider"]
        command += ["-p", "suite_pytest", "-o", "addopts=", "--doctest-modules", "--rootdir", str(self.root)]
        ini = self.root / "source" / "pytest.ini"
        command += ["-c", str(ini)] if ini.exists() else []
        command += ["-m", "not network and not heavy and not tui", "--basetemp", str(work / "tmp")]
        command += [f"--deselect={test}" for test in self.deselected]
        return command + [str(self.root / part)]


class Unittest:
    """The members of a suite of unittest suites."""

    def __init__(self, _, arguments):
        (self.module,) = arguments
        listed = subprocess.run(
            [sys.executable, HERE / "suite_unittest.py", self.module], check=True, capture_output=True, text=True
        )
        self.parts = [line for line in listed.stdout.splitlines() if line.startswith("part ")]
        self.parts = [line.removeprefix("part ") for line in self.parts]

    def command(self, part, _):
        """Runs one member."""
        return [sys.executable, str(HERE / "suite_unittest.py"), self.module, part]


def run_part(kind, part, logs):
    """The outcomes of the tests in one part, by name; what their processes print goes to a file in `logs`."""
    work = pathlib.Path(tempfile.mkdtemp(prefix="suite-"))
    (work / "cwd").mkdir()
    noted = work / "outcomes"
    noted.touch()
    environment = dict(os.environ, SUITE_OUTCOMES=str(noted), SUITE_SECONDS_PER_TEST=str(SECONDS_PER_TEST))
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")]))
    with open(logs / (part.replace("/", "-") + ".log"), "wb") as log:
        while True:
            code = run_process(kind.command(part, work), work / "cwd", environment, log)
            outcomes, unfinished = read(noted)
            if not unfinished:
                break
            log.write(f"\nthe process ended with {code} during {unfinished}\n".encode())
            with open(noted, "a") as lines:
                lines.writelines(f"crashed {test}\n" for test in unfinished)
    # Both kinds of process end with 0 to 5 when they came to their end, whatever the tests said.
    if not 0 <= code <= 5:
        outcomes["(the end of the process)"] = "crashed"
    shutil.rmtree(work, ignore_errors=True)
    return outcomes


def run_process(command, cwd, environment, log):
    """Runs a process to its end; returns its exit status."""
    try:
        return subprocess.run(
            command, cwd=cwd, env=environment, stdout=log, stderr=log, timeout=SECONDS_PER_PROCESS
        ).returncode
    except subprocess.TimeoutExpired:
        return -1


def read(noted):
    """The outcomes noted so far, by test, and the tests that began and did not end."""
    outcomes, unfinished = {}, []
    for line in noted.read_text().splitlines():
        outcome, test = line.split(" ", 1)
        if outcome == "start":
            unfinished.append(test)
        else:
            outcomes[test] = outcome
            if test in unfinished:
                unfinished.remove(test)
    return outcomes, unfinished


def lines_of(part, outcomes):
    """What a record says of one part."""
    unusual = [f"{outcome} {test}" for test, outcome in sorted(outcomes.items()) if outcome not in ("passed", "skipped")]
    return [" ".join([part, *counts(outcomes.values())])] + unusual


def counts(outcomes):
    """How often each outcome occurs, as `outcome=number`."""
    found = collections.Counter(outcomes)
    return [f"{outcome}={found[outcome]}" for outcome in sorted(found)]


def recorded(record):
    """The parts of a record, each with its lines."""
    parts = {}
    for line in record.read_text().splitlines():
        if line.startswith("  "):
            parts[part].append(line.strip())
        elif line and not line.startswith("#"):
            parts[part := line.split(" ", 1)[0]] = [line]
    return parts


def main():
    """Runs all parts; the exit status says whether they gave what is recorded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, required=True)
    parser.add_argument("--record", type=pathlib.Path, required=True)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--only", action="append", default=[], metavar="TEXT")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("kind", choices=["pytest", "unittest"])
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    root = arguments.root.resolve()
    logs = root / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    kind = {"pytest": Pytest, "unittest": Unittest}[arguments.kind](root, arguments.arguments)
    only = arguments.only or [""]
    kind.parts = [part for part in kind.parts if any(text in part for text in only)]
    expected = recorded(arguments.record) if arguments.record.exists() else {}
    expected = {part: lines for part, lines in expected.items() if any(text in part for text in only)}
    results, totals, different, begun = {}, [], 0, time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        pending = {pool.submit(run_part, kind, part, logs): part for part in kind.parts}
        for done in concurrent.futures.as_completed(pending):
            part, outcomes = pending[done], done.result()
            results[part] = lines_of(part, outcomes)
            totals += outcomes.values()
            print(f"[{len(results)}/{len(pending)}, {time.monotonic() - begun:.0f} s] {results[part][0]}", flush=True)
            if not arguments.write:
                # Without a record the counts stand for themselves, and the lines about single tests differ from none.
                different += differences(expected.get(part, results[part][:1]), results[part])
    if arguments.write:
        write(arguments.record, results, whole=not arguments.only)
    else:
        for part in sorted(set(expected) - set(results)):
            different += 1
            print(f"  recorded and not run: {part}")
    summary = " ".join(counts(totals))
    outcome = "recorded" if arguments.write else f"{different} other than recorded" if different else "as recorded"
    (root / "summary").write_text(f"{summary}: {outcome}\n")
    return 1 if different else 0


def differences(expected, found):
    """Prints the lines of a part that are not as recorded; returns their number."""
    other = [f"  - {line}" for line in expected if line not in found]
    other += [f"  + {line}" for line in found if line not in expected]
    for line in other:
        print(line, flush=True)
    return len(other)


def write(record, results, whole):
    """Writes a record; its comments stay, and unless it is a `whole` run the parts that were not run."""
    old = record.read_text().splitlines() if record.exists() else []
    parts = {} if whole or not old else recorded(record)
    parts.update(results)
    lines = [line for line in old if line.startswith("#")]
    for part in sorted(parts):
        lines += [parts[part][0]] + [f"  {line}" for line in parts[part][1:]]
    record.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    sys.exit(main())

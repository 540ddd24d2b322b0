"""Runs a program's own test suite in parts, each in processes of its own, and compares the outcomes with a record.

    suite.py --root DIR --record FILE [--write] [--jobs N] pytest [--deselect TEST] FILE...
    suite.py --root DIR --record FILE [--write] [--jobs N] unittest MODULE

A part is a test file for pytest, and for unittest a member of what MODULE.suite() returns. The process of a part notes
each outcome as it happens; a test that kills its process or hangs is `crashed`, and the next process goes on behind it. A
part that takes too long as a whole is stopped, and counts as `stopped`. Long parts say from time to time how far they are.

A record has a line per part with the number of each outcome, then a line for each test that neither passed nor was
skipped; lines with # are comments. A part that gives something else, even one test less, fails the run, and so does one
that is not recorded; at the end all of them are listed. `--write` writes the record instead: for the C library. `--only
TEXT` limits either to the parts with TEXT in their names.
"""

import argparse
import collections
import concurrent.futures
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
SECONDS_PER_TEST = 180
SECONDS_PER_PART = 2400
SECONDS_BETWEEN_SIGNS_OF_LIFE = 60


class Pytest:
    """The files of a pytest suite."""

    # Exit statuses of processes that came to their end: all passed, some did not, a file cannot be imported, nothing to run.
    ends = (0, 1, 2, 5)

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

    ends = (0,)

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


def run_part(kind, part, logs, running):
    """The outcomes of the tests in one part, by name; what their processes print goes to a file in `logs`.

    The process at work is in `running`, for those who want to end it.
    """
    work = pathlib.Path(tempfile.mkdtemp(prefix="suite-"))
    (work / "cwd").mkdir()
    noted = work / "outcomes"
    noted.touch()
    environment = dict(os.environ, SUITE_OUTCOMES=str(noted), SUITE_SECONDS_PER_TEST=str(SECONDS_PER_TEST))
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")]))
    until = time.monotonic() + SECONDS_PER_PART
    with open(logs / (part.replace("/", "-") + ".log"), "wb") as log:
        while True:
            # A session of its own, so that processes which the tests start can be ended with it.
            with subprocess.Popen(
                kind.command(part, work),
                cwd=work / "cwd",
                env=environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            ) as process:
                running.add(process)
                code = wait(process, until, lambda: say_how_far(part, noted))
                end(process)
                running.discard(process)
            outcomes, unfinished = read(noted)
            if code is None or not unfinished:
                break
            log.write(f"\nthe process ended with {code} during {unfinished}\n".encode())
            with open(noted, "a") as lines:
                lines.writelines(f"crashed {test}\n" for test in unfinished)
    if code is None:
        outcomes["(the part)"] = "stopped"
    elif code not in kind.ends:
        outcomes["(the end of the process)"] = "crashed"
    shutil.rmtree(work, ignore_errors=True)
    return outcomes


def wait(process, until, sign_of_life):
    """The exit status of a process, or None if it has none at the time `until`."""
    while (left := until - time.monotonic()) > 0:
        try:
            return process.wait(min(left, SECONDS_BETWEEN_SIGNS_OF_LIFE))
        except subprocess.TimeoutExpired:
            sign_of_life()
    return None


def say_how_far(part, noted):
    """A sign of life of a part that takes long."""
    outcomes, unfinished = read(noted)
    print(f"    {part}: {len(outcomes)} tests so far, now {' '.join(unfinished) or 'between two'}", flush=True)


def end(process):
    """Ends a process and those that it left behind."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def read(noted):
    """The outcomes noted so far, by test, and the tests that began and did not end."""
    outcomes, unfinished = {}, []
    # What comes after the last end of a line is being written.
    for line in noted.read_text().split("\n")[:-1]:
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
    expected = recorded(arguments.record) if arguments.record.exists() and not arguments.write else {}
    expected = {part: lines for part, lines in expected.items() if any(text in part for text in only)}
    results, totals, different = {}, [], {}
    for progress, part, outcomes in run_parts(kind, logs, arguments.jobs):
        results[part] = lines_of(part, outcomes)
        totals += outcomes.values()
        print(progress, results[part][0], flush=True)
        if not arguments.write:
            show(different, part, expected.get(part, []), results[part])
    if arguments.write and "stopped" in totals:
        outcome = "not recorded, since a part was stopped"
    elif arguments.write:
        write(arguments.record, results, whole=not arguments.only)
        outcome = "recorded"
    else:
        for part in sorted(set(expected) - set(results)):
            show(different, part, expected[part], [])
        outcome = f"other than recorded in {len(different)} parts" if different else "as recorded"
        print(f"{len(results)} parts: {outcome}", *different, sep="\n    ", flush=True)
    (root / "summary").write_text(f"{' '.join(counts(totals))}: {outcome}\n")
    return 1 if different or "stopped" in totals else 0


def run_parts(kind, logs, jobs):
    """Yields how far the run is, a part that has ended, and its outcomes."""
    begun, running = time.monotonic(), set()
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        pending = {pool.submit(run_part, kind, part, logs, running): part for part in kind.parts}
        try:
            for number, done in enumerate(concurrent.futures.as_completed(pending), 1):
                yield f"[{number}/{len(pending)}, {time.monotonic() - begun:.0f} s]", pending[done], done.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in list(running):
                end(process)
            raise


def show(different, part, expected, found):
    """Prints the lines of a part that are not as recorded, and notes them in `different`."""
    other = [f"  - {line}" for line in expected if line not in found]
    other += [f"  + {line}" for line in found if line not in expected]
    if other:
        different[part] = other
        print("\n".join(other), flush=True)


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

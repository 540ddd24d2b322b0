"""Notes the outcomes of tests in the file SUITE_OUTCOMES as they happen, so that a crash loses none.

`start TEST` before a test, `OUTCOME TEST` after it. A test that runs for more than SUITE_SECONDS_PER_TEST ends the process,
with the stacks of its threads on stderr.
"""

import faulthandler
import os
import sys

_noted = open(os.environ["SUITE_OUTCOMES"], "a+", buffering=1)
_seconds = float(os.environ["SUITE_SECONDS_PER_TEST"])


def seen():
    """The tests that earlier processes began: they ran, or the process died of them."""
    _noted.seek(0)
    return {line.rstrip("\n").split(" ", 1)[1] for line in _noted}


def shown(test):
    """A test's name on one line."""
    return test.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")


def start(test):
    """To be called before a test."""
    _noted.write(f"start {shown(test)}\n")
    faulthandler.dump_traceback_later(_seconds, exit=True, file=sys.__stderr__)


def finish(test, outcome):
    """To be called after a test."""
    faulthandler.cancel_dump_traceback_later()
    _noted.write(f"{outcome} {shown(test)}\n")


def close():
    """To be called at the end; suites that turn warnings into errors mind open files."""
    _noted.close()

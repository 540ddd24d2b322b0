"""The pytest plugin of suite.py: notes outcomes, and runs only what no earlier process ran."""

import suite_outcomes

_ORDER = ["passed", "skipped", "xfailed", "xpassed", "failed", "error"]
_worst = {}


def pytest_collection_modifyitems(items):
    """Leaves out what earlier processes ran or died of."""
    seen = suite_outcomes.seen()
    items[:] = [item for item in items if suite_outcomes.shown(item.nodeid) not in seen]


def pytest_runtest_logstart(nodeid):
    """A test begins."""
    suite_outcomes.start(nodeid)


def pytest_runtest_logreport(report):
    """Keeps the worst of what setup, the call and teardown gave."""
    outcome = report.outcome
    if hasattr(report, "wasxfail"):
        outcome = "xfailed" if report.skipped else "xpassed"
    elif report.failed and report.when != "call":
        outcome = "error"
    _worst[report.nodeid] = max(_worst.get(report.nodeid, "passed"), outcome, key=_ORDER.index)


def pytest_runtest_logfinish(nodeid):
    """A test ended."""
    suite_outcomes.finish(nodeid, _worst.pop(nodeid, "passed"))


def pytest_collectreport(report):
    """A file that cannot be imported, or skips itself as a whole, counts as one test."""
    if report.failed or report.skipped:
        suite_outcomes.finish(report.nodeid, "error" if report.failed else "skipped")


def pytest_unconfigure():
    """The end."""
    suite_outcomes.close()

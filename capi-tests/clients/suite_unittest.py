"""The process of suite.py for unittest: lists the parts of a suite, or runs one.

    suite_unittest.py MODULE [PART]
"""

import collections
import importlib
import sys
import unittest


def parts(module):
    """The members of the module's suite, by the module of their first test."""
    found = {}
    for member in importlib.import_module(module).suite():
        tests = list(flattened(member))
        if tests:
            found.setdefault(type(tests[0]).__module__, []).extend(tests)
    return found


def flattened(suite):
    """The tests of a suite and of the suites in it."""
    for member in suite:
        if isinstance(member, unittest.TestSuite):
            yield from flattened(member)
        else:
            yield member


class Result(unittest.TestResult):
    """Notes outcomes, under `names`: by the identity of the test, since equal ones may occur several times."""

    def __init__(self, outcomes, names):
        super().__init__()
        self.outcomes, self.names, self.outcome = outcomes, names, "passed"

    def startTest(self, test):
        super().startTest(test)
        self.outcome = "passed"
        self.outcomes.start(self.names[id(test)])

    def stopTest(self, test):
        super().stopTest(test)
        self.outcomes.finish(self.names[id(test)], self.outcome)

    def _bad(self, outcome, error):
        self.outcome = outcome
        print(*error, sep="\n", file=sys.stderr, flush=True)

    def addError(self, test, err):
        super().addError(test, err)
        if id(test) in self.names:
            self._bad("error", self.errors[-1])
        else:
            # The set-up of a class or a module failed.
            self.outcomes.finish(str(test), "error")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._bad("failed", self.failures[-1])

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._bad("failed", (str(subtest), repr(err[1])))

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        if id(test) in self.names:
            self.outcome = "skipped"

    def addExpectedFailure(self, test, err):
        super().addExpectedFailure(test, err)
        self.outcome = "xfailed"

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.outcome = "xpassed"


def main():
    """Lists or runs."""
    module, *part = sys.argv[1:]
    found = parts(module)
    if not part:
        for name in found:
            print("part", name)
        return
    import suite_outcomes

    seen = suite_outcomes.seen()
    times, names, todo = collections.Counter(), {}, unittest.TestSuite()
    tests = found[part[0]]
    for test in tests:
        times[test.id()] += 1
        name = test.id() if times[test.id()] == 1 else f"{test.id()}#{times[test.id()]}"
        if suite_outcomes.shown(name) not in seen:
            names[id(test)] = name
            todo.addTest(test)
    todo.run(Result(suite_outcomes, names))


if __name__ == "__main__":
    main()

"""Runs a program under callgrind, and says what its functions cost by themselves and what they called."""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def required(build):
    """Where valgrind is. Ends the test where nothing can be counted."""
    if build != "plain":
        skip("only a release build without sanitizers and audits is counted")
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        skip("valgrind is not installed (./dev setup)")
    return valgrind


def run(valgrind, command, within):
    """What the functions whose names match `within` cost, with all that they call; and what the
    program has printed."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "profile"
        ran = subprocess.run(
            [valgrind, "--tool=callgrind", "--collect-bus=yes", f"--callgrind-out-file={out}",
             f"--toggle-collect={within}", *map(str, command)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        if ran.returncode != 0 or not out.exists():
            sys.exit(f"callgrind failed ({ran.returncode}):\n{(ran.stdout + ran.stderr)[-2000:]}")
        return Profile(out.read_text()), ran.stdout


class Profile:
    """Costs are pairs: instructions, and locked ones (bus events).

    own     function -> what it costs without those that it calls
    calls   (function, called) -> what the calls of the one by the other cost, with all below
    total   instructions of all
    """

    def __init__(self, text):
        self.own, self.calls, self.total = {}, {}, 0
        self._names, function, called = {}, None, None
        for line in text.splitlines():
            if line.startswith("fn="):
                function = self._name(line[3:])
            elif line.startswith("cfn="):
                called = self._name(line[4:])
            elif line.startswith(("summary: ", "totals: ")):
                self.total = int(line.split()[1])
            elif re.match(r"[+\-*\d]", line) and function:
                costs = self.calls if called else self.own
                cost = costs.setdefault((function, called) if called else function, [0, 0])
                for i, more in enumerate(line.split()[1:3]):
                    cost[i] += int(more)
                called = None

    # A name is written once, with a number, and then it is the number alone.
    def _name(self, text):
        number, _, name = text.partition(" ")
        if name:
            self._names[number] = name
        return self._names[number]


def difference(once, twice, times):
    """What one of `times` more repetitions costs, of each key of two tables of costs."""
    none = [0, 0]
    return {key: [(cost[i] - once.get(key, none)[i]) / times for i in range(2)]
            for key, cost in twice.items()}

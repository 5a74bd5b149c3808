"""Programs of these tests, as they are and under `cistern run`."""

import json
import os
import subprocess
import tempfile

BENCH = None  # the Bench of a test that runs


class Bench:
    """Where the command, the library, the fake of a vendor and the programs are."""

    def __init__(self, command, library, fake, programs):
        self.command, self.library, self.fake, self.programs = command, library, fake, programs

    def environment(self, served):
        env = {**os.environ, "LD_LIBRARY_PATH": f"{self.fake}:{self.programs}",
               "CISTERN_PRELOAD": self.library}
        for name in ("CISTERN_CONF", "LD_PRELOAD"):
            env.pop(name, None)
        if served:
            env["SERVED"] = "1"
        return env

    def path(self, program):
        return program if os.sep in program else os.path.join(self.programs, program)

    def alone(self, program, *args):
        return subprocess.run([self.path(program), *args], env=self.environment(False),
                              capture_output=True, text=True, timeout=120)

    def run(self, program, *args, options=(), extra=None):
        return Run(self, program, args, options, extra)


class Run:
    """A run under Cistern: how it ended, its summary as JSON, what it said."""

    def __init__(self, bench, program, args, options, extra):
        with tempfile.TemporaryDirectory() as folder:
            summary = os.path.join(folder, "summary.json")
            ended = subprocess.run(
                [bench.command, "run", "--json", summary, *options, "--", bench.path(program), *args],
                env={**bench.environment(True), **(extra or {})}, capture_output=True, text=True,
                timeout=120)
            self.status, self.out, self.err = ended.returncode, ended.stdout, ended.stderr
            self.summary = {}
            if os.path.exists(summary):
                with open(summary) as file:
                    self.summary = json.load(file)
        self.process = (self.summary.get("processes") or [{}])[0]

    def calls(self, name):
        return self.process["served"][name]["calls"]

    def passed(self, beginning):
        return sum(n for why, n in self.process["passed"].items() if why.startswith(beginning))

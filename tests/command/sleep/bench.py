"""What the tests of `cistern sleep` stand on: the command, a driver of our own, and processes."""

import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest


class Machine:
    """A folder that stands for a machine's driver: driver/saving_driver.cpp says what lies in it."""

    RUNNING, LOCKED, SAVED, FAILED = range(4)

    def __init__(self, command, drivers, programs):
        self.command, self.drivers, self.programs = command, drivers, programs
        self.made = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.made.name)

    def close(self):
        self.made.cleanup()

    def environment(self, driver="now", **more):
        env = {**os.environ, "LD_LIBRARY_PATH": f"{self.drivers}/{driver}", "FAKE_SAVING_DRIVER": str(self.folder)}
        for name in ("CISTERN_CONF", "CISTERN_BACKEND", "LD_PRELOAD", "CISTERN_SLEEPABLE"):
            env.pop(name, None)
        return {**env, **more}

    def has_cuda(self, pid, state=RUNNING, memory=0):
        (self.folder / str(pid)).write_text(f"{state}\n")
        if memory:
            with (self.folder / "memory").open("a") as file:
                file.write(f"{pid} {memory}\n")

    def state(self, pid):
        return int((self.folder / str(pid)).read_text())

    def plans(self, **calls):
        """A call's error, or (error, milliseconds that it takes)."""
        rows = [(name, *(plan if isinstance(plan, tuple) else (plan, 0))) for name, plan in calls.items()]
        (self.folder / "plan").write_text("".join(f"{name} {code} {wait}\n" for name, code, wait in rows))

    def calls(self):
        """The calls since the last time that this was asked."""
        log = self.folder / "calls"
        text = log.read_text() if log.exists() else ""
        log.write_text("")
        return [line.split()[0] for line in text.splitlines()]

    def start(self, *args, **environment):
        return subprocess.Popen([self.command, *map(str, args)], env=self.environment(**environment),
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self, *args, **environment):
        return subprocess.run([self.command, *map(str, args)], env=self.environment(**environment),
                              capture_output=True, text=True, timeout=60)


class Case(unittest.TestCase):
    def until(self, what):
        end = time.monotonic() + 60
        while not what():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)


class Talker:
    """A program that takes a command a line, and answers each with a line (sleepable_program.cpp)."""

    def __init__(self, *command, env):
        self.process = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        self.pid = self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.returncode is None:
            self.process.kill()
            self.process.communicate()

    def ask(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def end(self):
        """How it ends, and what it has said on its standard error."""
        said = self.process.communicate()[1]
        return self.process.returncode, said


@contextlib.contextmanager
def sleeper(*arguments):
    """A process that does nothing."""
    process = subprocess.Popen(arguments or [sys.executable, "-c", "import sys; sys.stdin.read()"],
                               stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()

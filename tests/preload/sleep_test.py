"""A program on a fake driver under `cistern run --sleepable`, and `cistern sleep`, which has a driver of its own.

sleep_test.py COMMAND LIBRARY FOLDER_OF_THE_DRIVER FOLDER_OF_PROGRAMS [unittest arguments]"""

import os
import pathlib
import re
import subprocess
import sys
import unittest

import runs

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "command/sleep"))
import bench


class Sleep(unittest.TestCase):
    def setUp(self):
        drivers = pathlib.Path(BENCH.programs).parent / "command/sleep/drivers"
        self.machine = bench.Machine(BENCH.command, drivers, BENCH.programs)
        self.addCleanup(self.machine.close)

    def start(self, *options, env=None):
        run = subprocess.Popen([BENCH.command, "run", *options, "--quiet", "--", BENCH.path("sleep_program")],
                               env={**BENCH.environment(True), **(env or {})}, stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)
        self.addCleanup(run.communicate)
        self.assertEqual(run.stdout.readline(), "freed\n")
        children = pathlib.Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()
        return run, int(children[0])

    def slept(self, pid):
        self.machine.has_cuda(pid)
        ended = self.machine.run("sleep", pid)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        return re.search("; its caches (.*)\n", ended.stdout)[1]

    def again(self, run):
        run.stdin.write("\n")
        run.stdin.flush()
        self.assertEqual(run.stdout.readline(), "freed\n")

    def test_a_program_that_is_not_changed_empties_its_caches(self):
        for conf in ((), ("--conf", "backing:segments"), ("--strict",)):
            with self.subTest(conf=conf):
                run, pid = self.start("--sleepable", *conf)
                for _ in range(3):
                    given = re.fullmatch(r"gave back (\d+)\.\d\d MiB", self.slept(pid))
                    self.assertGreaterEqual(int(given[1]), 60)
                    self.again(run)
                run.communicate()
                self.assertEqual(run.returncode, 0)

    def test_without_the_option_it_has_no_socket_and_sleeps_with_its_caches(self):
        run, pid = self.start()
        folder = f"/proc/{pid}/fd"
        self.assertFalse([each for each in os.listdir(folder) if os.readlink(f"{folder}/{each}").startswith("socket")])
        self.assertIn("were not emptied", self.slept(pid))
        self.again(run)

    def test_the_variable_does_the_same(self):
        _, pid = self.start(env={"CISTERN_SLEEPABLE": "1"})
        self.assertIn("gave back", self.slept(pid))


if __name__ == "__main__":
    BENCH = runs.Bench(*sys.argv[1:5])
    unittest.main(argv=[sys.argv[0], *sys.argv[5:]])

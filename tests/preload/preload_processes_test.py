"""Processes of `cistern run`, on a fake driver: of the same number, what one that was killed has left, and what their
environment says.

preload_processes_test.py COMMAND LIBRARY FOLDER_OF_THE_DRIVER FOLDER_OF_PROGRAMS [unittest arguments]"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest

import runs


def Run(program, *args, **how):
    return BENCH.run(program, *args, **how)


class Numbers(unittest.TestCase):
    """Processes in several PID namespaces have the same number."""

    NEW = ["unshare", "--map-root-user", "--pid", "--fork", "--kill-child"]

    def setUp(self):
        if subprocess.run([*self.NEW, "true"], capture_output=True).returncode != 0:
            self.skipTest("no PID namespace can be made here")

    def test_each_has_a_record_and_a_trace(self):
        one = f"{' '.join(self.NEW)} {PROGRAMS}/runtime_static forks_first"
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "program.trace")
            run = Run("/bin/sh", "-c", f"{one} & {one} & {one} & wait", options=["--follow-children", "--trace", path])
            self.assertEqual(run.status, 0, run.err)
            counts = [p["served"]["cudaMalloc"]["calls"] for p in run.summary["processes"]]
            self.assertEqual(sorted(counts)[-3:], [10, 10, 10])
            numbers = [p["number"] for p in run.summary["processes"]]
            self.assertEqual(len(set(numbers)), len(numbers))
            rows, named = [], []
            for name in os.listdir(folder):
                with open(os.path.join(folder, name)) as file:
                    named.append(file.readline())
                    rows.append(sum(line.startswith("a ") for line in file))
            self.assertEqual(sorted(rows)[-3:], [10, 10, 10])
            self.assertEqual(len(set(named)), len(named))

    def test_a_helper_that_has_the_programs_number_is_not_served(self):
        # The command is process 1 there, and the program 2; so is the helper's child.
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "summary.json")
            helper = f"unset SERVED; unshare --pid --fork --kill-child /bin/sh -c '{PROGRAMS}/runtime_static loop; true'"
            ended = subprocess.run([*self.NEW, COMMAND, "run", "--json", path, "--", "/bin/sh", "-c", f"{helper}; true"],
                                   env=BENCH.environment(True), capture_output=True, text=True, timeout=120)
            self.assertEqual(ended.returncode, 0, ended.stderr)
            with open(path) as file:
                processes = json.load(file)["processes"]
            self.assertEqual([p["served"]["cudaMalloc"]["calls"] for p in processes], [0])


class KilledRuns(unittest.TestCase):
    """What a `cistern run` that was killed has left is removed by the next."""

    def begin(self, folder):
        run = subprocess.Popen([COMMAND, "run", "--quiet", "--", "/bin/sh", "-c", "echo $$; exec sleep 100"],
                               env={**BENCH.environment(True), "TMPDIR": folder}, stdout=subprocess.PIPE, text=True)
        return run, int(run.stdout.readline())

    def next(self, folder):
        ended = subprocess.run([COMMAND, "run", "--quiet", "--", "/bin/true"],
                               env={**BENCH.environment(True), "TMPDIR": folder}, timeout=120)
        self.assertEqual(ended.returncode, 0)
        return len(os.listdir(folder))

    def test_it_stays_as_long_as_the_run_or_the_program_lives(self):
        with tempfile.TemporaryDirectory() as folder:
            run, program = self.begin(folder)
            self.assertEqual(self.next(folder), 1)
            run.kill()
            run.wait()
            run.stdout.close()
            self.assertEqual(self.next(folder), 1)
            os.kill(program, signal.SIGKILL)
            while os.path.exists(f"/proc/{program}/exe"):
                pass
            for _ in range(1000):  # until somebody has waited for it
                if self.next(folder) == 0:
                    return
            self.fail("it is never removed")

    def test_what_is_anothers_or_no_folder_stays(self):
        with tempfile.TemporaryDirectory() as folder:
            os.symlink(folder, os.path.join(folder, "cistern-run-linked"))
            open(os.path.join(folder, "cistern-run-file"), "w").close()
            self.assertEqual(self.next(folder), 2)


class Environment(unittest.TestCase):
    """Variables of the environment, which `cistern run` or its library obeys or refuses."""

    def test_the_backend_of_the_environment_is_obeyed_or_refused(self):
        for backend in ("cuda", "auto", ""):
            self.assertEqual(Run("runtime_static", "loop", extra={"CISTERN_BACKEND": backend}).calls("cudaMalloc"), 1000)
        other = Run("runtime_static", "loop", extra={"CISTERN_BACKEND": "hip"})
        self.assertEqual(other.err.count("CISTERN_BACKEND is hip, and this program is on cuda: must be auto or cuda"), 1)
        self.assertEqual(other.calls("cudaMalloc"), 0)
        for backend in ("sim", "simm"):
            refused = Run("/bin/echo", "hello", extra={"CISTERN_BACKEND": backend})
            self.assertEqual((refused.status, refused.out), (2, ""))
            self.assertIn("CISTERN_BACKEND", refused.err)

    def test_settings_that_no_run_has_made_serve_nothing_and_are_said(self):
        for name in ("CISTERN_RUN_PROCESS", "CISTERN_RUN_NAMESPACE"):
            ended = subprocess.run(["/bin/true"], env={"LD_PRELOAD": BENCH.library, name: "it"}, capture_output=True,
                                   text=True)
            self.assertEqual((ended.returncode, ended.stderr), (0, f"cistern: {name} is no number, as `cistern run` "
                                                                   "sets it: nothing is served\n"))

    def test_nccl_registers_nothing_for_graphs_unless_the_program_says_so(self):
        shell = ("/bin/sh", "-c", "echo $NCCL_GRAPH_REGISTER")
        self.assertEqual(Run(*shell, extra={"NCCL_GRAPH_REGISTER": "1"}).out, "1\n")
        self.assertEqual(Run(*shell).out, "0\n")


if __name__ == "__main__":
    COMMAND, LIBRARY, DRIVER, PROGRAMS = sys.argv[1:5]
    BENCH = runs.Bench(COMMAND, LIBRARY, DRIVER, PROGRAMS)
    unittest.main(argv=[sys.argv[0], *sys.argv[5:]])

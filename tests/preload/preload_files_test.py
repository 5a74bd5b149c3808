"""The files that `cistern run` writes of programs on a fake driver: traces, and the summary.

preload_files_test.py COMMAND LIBRARY FOLDER_OF_THE_DRIVER FOLDER_OF_PROGRAMS [unittest arguments]"""

import base64
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

import runs


def Run(program, *args, **how):
    return BENCH.run(program, *args, **how)


class Reports(unittest.TestCase):
    def test_a_report_has_the_program_with_its_call_stacks(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "program.html")
            run = Run("runtime_static", "loop", options=["--report", path])
            if "this build has no page" in run.err:
                self.skipTest("this build makes no pages")
            self.assertEqual(run.status, 0, run.err)
            self.assertIn(f"cistern: the report is in {path}\n", run.err)
            with open(path) as file:
                data = re.search(r'id="cistern-data"[^>]*>([^<]*)</script>', file.read())[1]
            [recording] = json.loads(gzip.decompress(base64.b64decode(data)))["recordings"]
            self.assertIn("runtime_static", recording["name"])
            self.assertEqual(recording["allocations"], 1000)
            self.assertIsNone(recording["placed_by"])
            self.assertGreater(len(recording["stacks"]), 1)

    def test_a_program_that_allocates_nothing_has_no_report(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "program.html")
            ended = subprocess.run([COMMAND, "run", "--report", path, "--", "/bin/sh", "-c", "exit 0"],
                                   env=BENCH.environment(True), capture_output=True, text=True, timeout=120)
            self.assertEqual(ended.returncode, 1, ended.stderr)
            self.assertRegex(ended.stderr, "nothing was recorded|this build has no page")
            self.assertFalse(os.path.exists(path))


class Traces(unittest.TestCase):
    def test_a_program_that_allocates_nothing_leaves_the_file_and_says_so(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "program.trace")
            for status in (0, 5):
                with open(path, "w") as file:
                    file.write("before")
                ended = subprocess.run([COMMAND, "run", "--trace", path, "--", "/bin/sh", "-c", f"exit {status}"],
                                       env=BENCH.environment(True), capture_output=True, text=True, timeout=120)
                self.assertEqual(ended.returncode, status or 1, ended.stderr)
                self.assertIn(f"cistern: --trace {path}: nothing was recorded", ended.stderr)
                with open(path) as file:
                    self.assertEqual(file.read(), "before")

    def test_a_trace_that_is_recorded_replays_with_the_same_figures(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "program.trace.gz")
            run = Run("runtime_static", "loop", options=["--trace", path])
            self.assertEqual(run.status, 0, run.err)
            replay = subprocess.run([COMMAND, "replay", path, "--device", "sim", "--json"],
                                    capture_output=True, text=True, check=True)
            row = json.loads(replay.stdout.splitlines()[0])
            self.assertEqual(row["events"], 2000)
            self.assertEqual(row["peak_requested_bytes"], run.process["requested_peak_bytes"])
            with gzip.open(path, "rt") as file:
                self.assertIn('"stream_uses": "recorded"', file.readline())

    def test_a_child_that_is_followed_has_a_trace_of_its_own(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "program.trace")
            run = Run("runtime_static", "forks_first",
                      options=["--follow-children", "--trace", path])
            self.assertEqual(run.status, 0, run.err)
            parent, child = run.summary["processes"]
            with open(os.path.join(folder, f"program-{child['pid']}.trace")) as file:
                self.assertEqual(json.loads(file.readline().lstrip("# "))["name"], f"runtime_static {child['pid']}")
                self.assertEqual(sum(line.startswith("a ") for line in file), 10)
            self.assertFalse(os.path.exists(path))  # the parent allocates nothing
            self.assertIn("processes that it started did", run.err)
            for process in (parent, child):
                self.assertIn(f"process {process['number']}: runtime_static\n", run.err)

    def test_a_program_may_close_what_it_has_not_opened(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "program.trace")
            run = Run("runtime_static", "closes_descriptors", options=["--trace", path])
            self.assertEqual(run.status, 0, run.err)
            with open(path) as file:
                self.assertEqual(sum(line.startswith("a ") for line in file), 10)

    def test_a_program_that_is_killed_leaves_the_trace_so_far(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "program.trace")
            Run("runtime_static", "crash", options=["--trace", path])
            with open(path) as file:
                rows = [line for line in file if line.startswith("a ")]
            self.assertEqual(len(rows), 10)



class Histories(unittest.TestCase):
    """What `cistern run --report` draws. It sets these variables."""

    def recorded(self, history, *args):
        """The lines of each history, and how the program ended."""
        with tempfile.TemporaryDirectory() as folder:
            ended = subprocess.run([BENCH.path("runtime_static"), *args],
                                   env={**BENCH.environment(True), "LD_PRELOAD": LIBRARY,
                                        "CISTERN_RUN_FOLDER": folder, "CISTERN_RUN_HISTORY": history},
                                   capture_output=True, text=True, timeout=120)
            texts = []
            for name in sorted(os.listdir(folder)):
                if name.startswith("history_"):
                    self.assertTrue(name.endswith(".trace"), name)
                    with open(os.path.join(folder, name)) as file:
                        texts.append(file.read().splitlines())
            self.assertEqual(ended.returncode, 0, ended.stderr)
            self.assertEqual(ended.stderr, "")
            return texts

    def count(self, lines, verb):
        return sum(line.startswith(verb + " ") for line in lines)

    def test_each_allocator_has_a_file(self):
        (lines,) = self.recorded("events", "loop")
        header = json.loads(lines[0].lstrip("# "))
        self.assertEqual((header["name"], header["recording"]), ("runtime_static", 1))
        self.assertEqual((self.count(lines, "a"), self.count(lines, "f")), (1000, 1000))
        self.assertEqual(self.count(lines, "S"), 0)
        self.assertGreater(self.count(lines, "r"), 0)

    def test_stacks_end_at_the_program(self):
        (lines,) = self.recorded("stacks", "loop")
        self.assertGreater(self.count(lines, "S"), 0)
        frames = [line for line in lines if line.startswith("N ")]
        self.assertTrue(any("runtime_static+0x" in frame for frame in frames), frames)
        self.assertFalse(any("libcistern_preload" in frame for frame in frames), frames)

    def test_a_child_of_fork_has_files_of_its_own(self):
        (lines,) = self.recorded("events", "forks_first")
        self.assertEqual(self.count(lines, "a"), 10)


class Summaries(unittest.TestCase):
    def test_the_summary_goes_to_an_open_descriptor_or_a_pipe(self):
        ended = subprocess.run([COMMAND, "run", "--json", "/dev/stdout", "--", "/bin/sh", "-c", "echo said"],
                               env=BENCH.environment(True), capture_output=True, text=True, timeout=120)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        said, _, summary = ended.stdout.partition("\n")
        self.assertEqual(said, "said")
        self.assertIn("processes", json.loads(summary))
        with tempfile.TemporaryFile("w+") as file:  # a file of the shell's, which it goes on writing to
            ended = subprocess.run(
                ["/bin/sh", "-c", f"echo first; {COMMAND} run --json /dev/stdout -- true; echo last"], stdout=file,
                stderr=subprocess.PIPE, env=BENCH.environment(True), text=True, timeout=120)
            file.seek(0)
            first, *summary, last = file.read().splitlines()
            self.assertEqual((first, last), ("first", "last"))
            self.assertIn("processes", json.loads("\n".join(summary)))


if __name__ == "__main__":
    COMMAND, LIBRARY, DRIVER, PROGRAMS = sys.argv[1:5]
    BENCH = runs.Bench(COMMAND, LIBRARY, DRIVER, PROGRAMS)
    unittest.main(argv=[sys.argv[0], *sys.argv[5:]])

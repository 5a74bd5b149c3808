"""`cistern run` on HIP programs over AMD's own runtime, on a played GPU.

run_test.py COMMAND LIBRARY PLAYED_GPU FOLDER_OF_PROGRAMS FOLDER_OF_THE_BENCH [unittest arguments]"""

import json
import os
import subprocess
import sys
import unittest

sys.path.insert(0, sys.argv[5])
import alike  # noqa: E402
import runs  # noqa: E402

# What the programs expect is so under Cistern and without.
ALIKE = ["loop", "busy_streams", "busy_blocking", "busy_legacy", "busy_per_thread", "busy_to_per_thread",
         "busy_new_and_gone", "stream_ordered", "unknown_pointers", "memory_info", "capture_of_allocations",
         "threads", "forks", "forks_first", "destructors"]
# AMD's stream-ordered memory ends some programs with a segmentation fault in HIP 5.2.
NOT_WITHOUT = ["stream_ordered"]
LATE = {"PLAYED_GPU_LAG_US": "200"}
SEEDS = range(3)


class Bench(runs.Bench):
    def environment(self, served):
        return {**super().environment(served), "LD_PRELOAD": self.fake}


class Programs(unittest.TestCase):
    def test_programs_do_the_same_under_cistern_and_without(self):
        for case in ALIKE:
            with self.subTest(case=case):
                if case not in NOT_WITHOUT:
                    ended = BENCH.alone("amd_memory", case)
                    self.assertEqual(ended.returncode, 0, ended.stderr)
                run = BENCH.run("amd_memory", case)
                self.assertEqual(run.status, 0, run.err)

    def test_they_have_their_own_ends(self):
        for case, status in (("exit_from_thread", 7), ("quick_exit", 8)):
            with self.subTest(case=case):
                self.assertEqual(BENCH.run("amd_memory", case).status, status)

    def test_a_reset_gives_all_memory_back(self):
        run = BENCH.run("amd_memory", "reset")
        self.assertEqual(run.status, 0, run.err)

    def test_two_gpus_have_memory_of_their_own(self):
        run = BENCH.run("amd_memory", "devices", extra={"PLAYED_GPU_COUNT": "2"})
        self.assertEqual(run.status, 0, run.err)

    def test_the_runtimes_calls_are_few(self):
        run = BENCH.run("amd_memory", "loop")
        self.assertEqual(run.process["vendor"], "hip")
        self.assertEqual(run.calls("hipMalloc"), 1000)
        self.assertEqual(run.process["requested_bytes"], 0)
        self.assertIn("1000 hipMalloc", run.err)


class Commands(unittest.TestCase):
    """The command's own use of the device."""

    def said(self, *arguments):
        ended = subprocess.run([BENCH.command, *arguments], env=BENCH.environment(False), capture_output=True,
                               text=True, timeout=120)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        return ended.stdout

    def test_doctor_speaks_of_hip(self):
        said = self.said("doctor")
        self.assertIn("hip 0: Played AMD GPU", said)
        self.assertIn("refuses a page: memory comes in segments", said)  # 5.2 reserves at a null address
        self.assertIn("sharing with other processes: the device cannot", said)  # nor by the driver's handles
        self.assertIn("memory that is freed is used again: yes", said)

    def test_a_trace_is_replayed_on_the_device(self):
        trace = os.path.join(os.path.dirname(sys.argv[5]), "..", "bench", "traces", "streams_prefetch.trace.gz")
        row = json.loads(self.said("replay", trace, "--device", "hip", "--json").splitlines()[0])
        self.assertGreater(row["peak_requested_bytes"], 0)
        self.assertGreaterEqual(row["peak_reserved_bytes"], row["peak_requested_bytes"])


class Pressure(alike.Pressure, unittest.TestCase):
    program = "amd_pressure"
    little = {"PLAYED_GPU_VRAM_MIB": "256"}
    two_at_once = ()  # HIP has no managed memory here
    options_of_loop = ([],)  # strictly, a pair takes until the played GPU's thread has come to an event

    def test_without_pages_of_the_host_it_is_refused_as_before_which_is_said(self):
        run = self.expect("too_much", ["--overflow", "512MiB"], **self.little)
        self.assertRegex(run.err, "cistern: overflow is off, and the program goes on without: .* has no pages of the host's")
        self.assertEqual(run.process["out_of_memory"], 1)


class Storm(unittest.TestCase):
    def test_random_threads_on_two_gpus_find_no_fault(self):
        for seed, options in ((3, []), (6, ["--strict"])):
            with self.subTest(seed=seed, options=options):
                run = BENCH.run("amd_storm", "5", str(seed), options=options, extra={
                    "STORM_PLAIN": "1", "STORM_EVEN_SIZES": "1", "PLAYED_GPU_COUNT": "2",
                    "PLAYED_GPU_VRAM_MIB": "768"})
                self.assertEqual(run.status, 0, run.err)
                self.assertIn("no fault", run.out)


class Order(unittest.TestCase):
    def test_memory_that_is_freed_in_use_is_in_order_before_it_is_used_again(self):
        for case in ("freed_in_a_capture", "while_launching", "marker_after_marker", "while_waiting"):
            with self.subTest(case=case):
                run = BENCH.run("amd_order", case, extra=LATE)
                self.assertEqual(run.status, 0, run.err)

    def test_random_programs_have_no_races(self):
        for seed in SEEDS:
            for case in ("random", "random_threads"):
                with self.subTest(case=case, seed=seed):
                    run = BENCH.run("amd_order", case, extra={"SEED": str(seed), **LATE})
                    self.assertEqual(run.status, 0, run.err)

    def test_it_is_the_order_that_keeps_them_from_races(self):
        for case in ("busy_streams", "busy_to_per_thread"):
            with self.subTest(case=case):
                run = BENCH.run("amd_memory", case, extra={"FAKE_FORGETS_WAITS": "1"})
                self.assertIn("gpu::races() == 0", run.err)


if __name__ == "__main__":
    BENCH = runs.BENCH = Bench(*sys.argv[1:5])
    unittest.main(argv=[sys.argv[0], *sys.argv[6:]])

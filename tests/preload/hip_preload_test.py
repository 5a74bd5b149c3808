"""HIP programs on a fake runtime, as they are and under `cistern run`.

hip_preload_test.py COMMAND LIBRARY FOLDER_OF_THE_RUNTIME FOLDER_OF_PROGRAMS [unittest arguments]"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

import alike
import runs

# The same is expected of each under Cistern and without, but where the program says otherwise.
ALIKE = {"hip_memory": ["loop", "busy_streams", "busy_blocking", "busy_legacy", "busy_per_thread",
                        "busy_to_per_thread", "busy_new_and_gone", "stream_ordered",
                        "unknown_pointers", "memory_info", "out_of_memory", "capture",
                        "capture_of_allocations", "reset", "devices", "threads", "forks",
                        "forks_first", "entry_points"],
         "hip_program": ["names", "work", "streams", "failures", "pointers", "kinds", "own_capture",
                         "other_device"],
         "hip_late": ["late"]}
CASES = [(program, case) for program, cases in ALIKE.items() for case in cases]
# Without Cistern the fake runtime gives stream-ordered memory back at once, in no stream's order.
NOT_WITHOUT = ["stream_ordered", "threads", "failures"]
# They count calls, or say that nobody waits.
NOT_STRICT = ["loop", "late", "names", "other_device", "busy_streams", "busy_blocking", "busy_legacy", "busy_per_thread",
              "busy_to_per_thread"]


class Programs(unittest.TestCase):
    def test_programs_do_the_same_under_cistern_and_without(self):
        for program, case in CASES:
            with self.subTest(program=program, case=case):
                if case not in NOT_WITHOUT:
                    ended = BENCH.alone(program, case)
                    self.assertEqual(ended.returncode, 0, ended.stderr)
                run = BENCH.run(program, case)
                self.assertEqual(run.status, 0, run.err)
                self.assertTrue(run.process["exited"])

    def test_they_do_when_reuse_is_strict_and_when_the_runtime_is_newer_than_what_is_known(self):
        for program, case in CASES:
            with self.subTest(program=program, case=case):
                if case not in NOT_STRICT:
                    run = BENCH.run(program, case, options=["--strict"])
                    self.assertEqual(run.status, 0, run.err)
                if case != "other_device":
                    run = BENCH.run(program, case, extra={"FAKE_HIP_VERSION": "90000000"})
                    self.assertEqual(run.status, 0, run.err)

    def test_every_call_is_counted_by_hips_names(self):
        run = BENCH.run("hip_memory", "loop")
        self.assertEqual(run.process["vendor"], "hip")
        self.assertEqual(run.calls("hipMalloc"), 1000)
        self.assertEqual(run.calls("hipFree"), 1000)
        self.assertEqual(run.process["requested_bytes"], 0)
        self.assertEqual(run.process["requested_peak_bytes"], 1 << 20)
        self.assertGreater(run.process["driver_nanoseconds"], 0)
        self.assertIn("1000 hipMalloc", run.err)
        self.assertIn("in hipMalloc and hipFree; the driver would", run.err)

    def test_what_is_not_served_is_listed(self):
        run = BENCH.run("hip_program", "kinds")
        for beginning, count in (("memory of a kind of its own (hipExtMallocWithFlags)", 1),
                                 ("pitched memory (hipMallocPitch", 1),
                                 ("arrays (hipMallocArray", 1),
                                 ("stream-ordered memory of a pool", 2)):
            self.assertEqual(run.passed(beginning), count, beginning)
        run = BENCH.run("hip_memory", "unknown_pointers")
        self.assertEqual(run.passed("managed memory (hipMallocManaged)"), 1)
        self.assertEqual(run.passed("frees of pointers"), 2)
        self.assertEqual(run.passed("frees of what is no block"), 5)

    def test_memory_that_is_to_be_shared_is_refused_or_the_runtimes(self):
        run = BENCH.run("hip_program", "pointers")
        self.assertEqual(run.passed("requests to share"), 1)
        self.assertIn("hipIpcGetMemHandle", run.err)
        run = BENCH.run("hip_program", "pointers", options=["--ipc"], extra={"IPC": "1"})
        self.assertEqual(run.status, 0, run.err)
        self.assertEqual(run.passed("hipMalloc, all of it"), 2)

    def test_a_program_may_have_cuda_as_well(self):
        driver = os.path.join(BENCH.programs, "driver")
        if not os.path.exists(os.path.join(driver, "libcuda.so.1")):
            self.skipTest("built without CUDA")
        run = BENCH.run("hip_late", "both", extra={
            "LD_LIBRARY_PATH": f"{BENCH.fake}:{BENCH.programs}:{driver}"})
        self.assertEqual(run.status, 0, run.err)
        self.assertEqual(run.process["contexts"], 2)
        self.assertEqual(run.passed("frees of pointers"), 200)

    def test_a_program_that_never_loads_hip_has_none_of_it(self):
        run = BENCH.run("/bin/sh", "-c", "grep -c amdhip /proc/$$/maps")
        self.assertEqual(run.out.strip(), "0")


class Cancelled(alike.Cancelled, unittest.TestCase):
    program = "hip_cancel"


class Pools(alike.Pools, unittest.TestCase):
    program, attributes = "hip_pools", "hip_attributes"


class Pressure(alike.Pressure, unittest.TestCase):
    program = "hip_pressure"


class Order(alike.Order, unittest.TestCase):
    program, seeds = "hip_order", range(30)
    kinds = ({}, {"FAKE_HIP_VERSION": "90000000"})


class Traces(unittest.TestCase):
    def test_a_trace_that_is_recorded_replays_with_the_same_figures(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "program.trace.gz")
            run = BENCH.run("hip_memory", "loop", options=["--trace", path])
            self.assertEqual(run.status, 0, run.err)
            replay = subprocess.run([BENCH.command, "replay", path, "--device", "sim", "--json"],
                                    capture_output=True, text=True, check=True)
            row = json.loads(replay.stdout.splitlines()[0])
            self.assertEqual(row["events"], 2000)
            self.assertEqual(row["peak_requested_bytes"], run.process["requested_peak_bytes"])

    def test_a_child_of_fork_is_followed_with_a_record_of_its_own(self):
        run = BENCH.run("hip_memory", "forks_first", options=["--follow-children"])
        self.assertEqual(run.status, 0, run.err)
        counts = sorted(p["served"][f"{p['vendor'] or 'cuda'}Malloc"]["calls"]
                        for p in run.summary["processes"])
        self.assertEqual(counts, [0, 10])


if __name__ == "__main__":
    BENCH = runs.BENCH = runs.Bench(*sys.argv[1:5])
    unittest.main(argv=[sys.argv[0], *sys.argv[5:]])

"""HIP programs on a fake runtime, as they are and under `cistern run`.

hip_preload_test.py COMMAND LIBRARY FOLDER_OF_THE_RUNTIME FOLDER_OF_PROGRAMS [unittest arguments]"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

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


class Cancelled(unittest.TestCase):
    def test_a_thread_is_cancelled_in_the_driver_and_not_in_cistern(self):
        for case in ("while_waiting", "while_launching", "while_allocating"):
            for options in ([], ["--strict"]):
                with self.subTest(case=case, options=options):
                    ended = BENCH.alone("hip_cancel", case)
                    self.assertEqual(ended.returncode, 0, ended.stderr)
                    run = BENCH.run("hip_cancel", case, options=options)
                    self.assertEqual(run.status, 0, run.err)


class Pools(unittest.TestCase):
    """Cistern stands in for the default pool of a device, as long as that is current and has no properties."""

    def test_the_pool_that_the_program_has_chosen_is_asked(self):
        for case in ("current", "access"):
            with self.subTest(case=case):
                ended = BENCH.alone("hip_pools", case)
                self.assertEqual(ended.returncode, 0, ended.stderr)
                run = BENCH.run("hip_pools", case)
                self.assertEqual(run.status, 0, run.err)

    def test_the_default_pool_says_of_itself_what_the_runtime_would(self):
        for case in ("used", "reserved", "other_memory", "peaks", "trims", "wrong_values", "settings", "other_device",
                     "of_two", "child"):
            with self.subTest(case=case):
                ended = BENCH.alone("hip_attributes", case)
                self.assertEqual(ended.returncode, 0, ended.stderr)
                run = BENCH.run("hip_attributes", case)
                self.assertEqual(run.status, 0, run.err)


class Pressure(unittest.TestCase):
    """A request is refused only where there is no room when Cistern has given back what it keeps."""

    def pressed(self, case, options):
        return BENCH.run("hip_pressure", case, options=options, extra={"FAKE_CAPACITY": str(256 << 20)})

    def test_it_is_asked_for_again_when_another_thread_has_given_back(self):
        for case in ("two_managed",):
            for options in ([], ["--strict"]):
                with self.subTest(case=case, options=options):
                    run = self.pressed(case, options)
                    self.assertEqual(run.status, 0, run.err)

    def test_without_pages_of_the_host_it_is_refused_as_before_which_is_said(self):
        run = self.pressed("too_much", ["--overflow", "512MiB"])
        self.assertEqual(run.status, 0, run.err)
        self.assertRegex(run.err, "cistern: overflow is off, and the program goes on without: .* has no pages of the host's")
        self.assertEqual(run.process["out_of_memory"], 1)

    def test_a_loop_without_work_waits_for_nothing(self):
        for options in ([], ["--strict"]):
            with self.subTest(options=options):
                run = BENCH.run("hip_pressure", "loop_without_work", options=options)
                self.assertEqual(run.status, 0, run.err)
                self.assertLessEqual(run.process["reserved_peak_bytes"], 64 << 20)

    def test_memory_that_work_uses_is_waited_for(self):
        for options in ([], ["--strict"]):
            with self.subTest(options=options):
                run = BENCH.run("hip_pressure", "used_by_work", options=options)
                self.assertEqual(run.status, 0, run.err)

    def test_what_does_not_fit_is_refused(self):
        run = self.pressed("too_much", [])
        self.assertEqual(run.status, 0, run.err)
        self.assertEqual(run.process["out_of_memory"], 1)


class Order(unittest.TestCase):
    """What is freed in use is in order before it is used again, for no more calls than it takes."""

    def test_the_order_costs_what_it_must(self):
        for case in ("without_work", "one_stream", "one_stream_that_is_waited_for", "two_streams",
                     "two_streams_at_once", "no_more_than_that", "freed_in_a_capture"):
            with self.subTest(case=case):
                run = BENCH.run("hip_order", case)
                self.assertEqual(run.status, 0, run.err)

    def test_it_holds_between_threads_too(self):
        for case in ("while_launching", "marker_after_marker", "while_waiting"):
            with self.subTest(case=case):
                run = BENCH.run("hip_order", case)
                self.assertEqual(run.status, 0, run.err)

    def random(self, case, seed, **more):
        return BENCH.run("hip_order", case, extra={"SEED": str(seed), **more})

    def test_random_programs_have_no_races(self):
        for seed in range(30):
            for case in ("random", "random_threads"):
                for more in ({}, {"FAKE_HIP_VERSION": "90000000"}):
                    with self.subTest(case=case, seed=seed, **more):
                        run = self.random(case, seed, **more)
                        self.assertEqual(run.status, 0, run.err)

    def test_neither_have_those_with_little_memory(self):
        moved = 0
        for seed in range(30):
            for case in ("random", "random_threads"):
                with self.subTest(case=case, seed=seed):
                    run = self.random(case, seed, FAKE_CAPACITY=str(24 << 20))
                    self.assertEqual(run.status, 0, run.err)
                    moved += run.process["out_of_memory"]
        self.assertGreater(moved, 0)  # there was too little for some

    def test_it_is_the_order_that_keeps_them_from_races(self):
        found = sum(self.random("random", seed, FAKE_FORGETS_WAITS="1").status != 0 for seed in range(20))
        self.assertGreaterEqual(found, 8)  # a program with one stream has none


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
    BENCH = runs.Bench(*sys.argv[1:5])
    unittest.main(argv=[sys.argv[0], *sys.argv[5:]])

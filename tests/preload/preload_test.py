"""Programs on a fake driver, as they are and under `cistern run`.

preload_test.py COMMAND LIBRARY FOLDER_OF_THE_DRIVER FOLDER_OF_PROGRAMS [unittest arguments]"""

import os
import signal
import subprocess
import sys
import tempfile
import unittest

import alike
import runs

RUNTIMES = ["runtime_static", "runtime_shared"]
# What a program does on the runtime, each in a process of its own; the same is expected of it under
# Cistern and without, but where it says otherwise itself.
ALIKE = ["loop", "busy_streams", "busy_blocking", "busy_legacy", "busy_per_thread",
         "busy_to_per_thread", "busy_new_and_gone", "stream_ordered", "unknown_pointers",
         "memory_info", "out_of_memory", "capture", "capture_of_allocations", "reset", "devices",
         "threads", "forks", "forks_first", "closes_descriptors", "destructors",
         "entry_points"]
# On the driver itself.
ON_THE_DRIVER = ["names", "versions", "deep_bind", "pointers", "ipc_names", "own_contexts", "contexts_of_one_device",
                 "pages_of_another_device", "stream_of_another_device", "last_release", "peers", "private_tables"]
# Two processes that share memory, of which the second may be served or not.
SHARING = ["read_and_write", "twice", "freed_first", "in_its_place", "wrong_handles", "hundred_blocks", "threads",
           "reset"]
SHARED_BY = ["ipc_driver", "ipc_runtime_static", "ipc_runtime_shared"]
FOLLOW = ["--follow-children"]
# Without Cistern the fake driver gives stream-ordered memory back at once, in no stream's order.
NOT_WITHOUT = ["stream_ordered", "threads"]


def alone(program, *args):
    return BENCH.alone(program, *args)


def Run(program, *args, **how):
    return BENCH.run(program, *args, **how)


class Programs(unittest.TestCase):
    def test_programs_do_the_same_under_cistern_and_without(self):
        for runtime in RUNTIMES:
            for case in ALIKE:
                with self.subTest(runtime=runtime, case=case):
                    if case not in NOT_WITHOUT:
                        ended = alone(runtime, case)
                        self.assertEqual(ended.returncode, 0, ended.stderr)
                    run = Run(runtime, case)
                    self.assertEqual(run.status, 0, run.err)
                    self.assertTrue(run.process["exited"])

    def test_programs_on_the_driver_are_served_however_they_find_it(self):
        for case in ON_THE_DRIVER:
            with self.subTest(case=case):
                ended = alone("driver_program", case)
                self.assertEqual(ended.returncode, 0, ended.stderr)
                run = Run("driver_program", case)
                self.assertEqual(run.status, 0, run.err)

    def test_a_driver_that_refuses_its_pages_is_served_by_segments(self):
        for step in ("cuMemAddressReserve", "cuMemCreate", "cuMemMap", "cuMemSetAccess"):
            with self.subTest(step=step):
                run = Run("runtime_static", "memory_info", extra={"FAKE_REFUSES": step})
                self.assertEqual(run.status, 0, run.err)
                self.assertGreaterEqual(run.process["reserved_peak_bytes"], 512 << 20)
                self.assertEqual(run.process["out_of_memory"], 0)

    def test_pages_are_open_to_network_cards_unless_the_driver_refuses_it(self):
        for extra in ({}, {"FAKE_RDMA": "1"}, {"FAKE_RDMA": "1", "FAKE_REFUSES_RDMA": "1"}):
            with self.subTest(**extra):
                run = Run("driver_program", "network_cards", extra=extra)
                self.assertEqual(run.status, 0, run.err)
                self.assertGreater(run.process["reserved_peak_bytes"], 0)

    def test_the_handle_of_a_page_is_refused(self):
        self.assertEqual(Run("driver_program", "pointers").passed("requests to share"), 1)

    def test_a_function_that_is_looked_up_again_and_again_is_named_once(self):
        self.assertEqual(Run("runtime_static", "devices").process["unknown_functions"].split().count("cuFakeLaunch"), 1)

    def test_memory_may_be_left_to_the_driver(self):
        run = Run("driver_program", "pointers", options=["--ipc"], extra={"IPC": "1"})
        self.assertEqual(run.status, 0, run.err)
        self.assertEqual(run.passed("cudaMalloc, all of it"), 2)

    def test_memory_is_the_same_when_it_is_made_of_segments_and_when_reuse_is_strict(self):
        for case in ALIKE:
            for options in (["--conf", "backing:segments"], ["--strict"]):
                if case.startswith("busy") and options == ["--strict"]:
                    continue  # nothing is reused before it is complete: see below
                if case in ("loop", "out_of_memory") and options != ["--strict"]:
                    continue  # they count calls, and pages
                with self.subTest(case=case, options=options):
                    run = Run("runtime_static", case, options=options)
                    self.assertEqual(run.status, 0, run.err)

    def test_every_call_is_counted(self):
        run = Run("runtime_static", "loop")
        self.assertEqual(run.calls("cudaMalloc"), 1000)
        self.assertEqual(run.calls("cudaFree"), 1000)
        self.assertEqual(run.process["requested_bytes"], 0)
        self.assertEqual(run.process["requested_peak_bytes"], 1 << 20)
        self.assertGreaterEqual(run.process["reserved_peak_bytes"], 1 << 20)
        self.assertGreater(run.process["driver_nanoseconds"], 0)

    def test_what_is_not_served_is_listed(self):
        run = Run("runtime_static", "unknown_pointers")
        self.assertEqual(run.passed("managed"), 1)
        self.assertEqual(run.passed("frees of pointers"), 2)
        self.assertEqual(run.passed("frees of what is no block"), 5)
        self.assertIn("managed memory (cudaMallocManaged)", run.err)
        self.assertEqual(Run("runtime_static", "capture_of_allocations").passed("memory of a graph"),
                         1)


class Cancelled(alike.Cancelled, unittest.TestCase):
    program = "cancel_program"


class Pressure(alike.Pressure, unittest.TestCase):
    program = "pressure_program"
    two_at_once = ("two_managed", "served_in_another_context")


class Ipc(unittest.TestCase):
    """Two processes share Cistern's memory by cudaIpcGetMemHandle."""

    def test_both_have_it_whether_the_other_is_served_or_not(self):
        for program in SHARED_BY:
            for case in SHARING:
                for options in ([], FOLLOW):
                    with self.subTest(program=program, case=case, options=options):
                        run = Run(program, case, options=options)
                        self.assertEqual(run.status, 0, run.err)

    def test_the_other_may_be_another_program_served_or_not_or_under_a_run_of_its_own(self):
        for program in SHARED_BY:
            for case in ("read_and_write", "twice", "hundred_blocks", "reset"):
                for options, command in (([], ""), (FOLLOW, ""), ([], COMMAND)):
                    with self.subTest(program=program, case=case, options=options, command=command):
                        run = Run(program, case, options=options, extra={"COMMAND": command})
                        self.assertEqual(run.status, 0, run.err)

    def test_what_is_open_stays_when_the_other_process_has_ended(self):
        for program in SHARED_BY:
            run = Run(program, "ended", options=FOLLOW)
            self.assertEqual(run.status, 0, run.err)
            self.assertRegex(run.err, "cudaIpcOpenMemHandle: the process that shared the CUDA memory .*it has ended")

    def test_it_is_so_with_strict_reuse_and_little_memory(self):
        for case in SHARING:
            if case == "in_its_place":
                continue  # nothing is before it is complete
            run = Run("ipc_driver", case, options=["--strict", *FOLLOW], extra={"FAKE_CAPACITY": str(64 << 20)})
            self.assertEqual(run.status, 0, run.err)

    def test_a_child_that_is_not_served_counts_nothing_in_its_parents_record(self):
        run = Run("ipc_driver", "twice")
        self.assertEqual((run.process["handles_given"], run.process["handles_opened"], run.process["contexts"]), (1, 0, 1))

    def test_handles_are_counted_and_what_cannot_be_opened_is_said_once(self):
        run = Run("ipc_driver", "twice", options=FOLLOW)
        given, opened = (sorted(p[f"handles_{done}"] for p in run.summary["processes"]) for done in ("given", "opened"))
        self.assertEqual((given, opened), ([0, 1], [0, 2]))
        self.assertIn("1 handles given to other processes, 0 of theirs opened", run.err)
        run = Run("ipc_driver", "wrong_handles")
        self.assertEqual(run.err.count("cudaIpcOpenMemHandle"), 1)
        self.assertIn("has been freed by the process that shared it", run.err)

    def test_it_is_refused_where_there_is_no_page_to_export(self):
        refused = {"EXPECTED": "801"}
        for options, extra, why in ((["--conf", "backing:segments"], {}, "it is not in pages"),
                                    ([], {"FAKE_NO_PAGES": "1"}, "it is not in pages"),
                                    ([], {"FAKE_NO_DESCRIPTORS": "1"}, "it is not in pages"),
                                    ([], {"FAKE_REFUSES_DESCRIPTORS": "1"}, "it is not in pages")):
            with self.subTest(options=options, **extra):
                run = Run("ipc_driver", "refused", options=options, extra={**refused, **extra})
                self.assertEqual(run.status, 0, run.err)
                self.assertEqual(run.passed("requests to share"), 1)
                self.assertIn(why, run.err)
                self.assertIn("cistern run --ipc", run.err)

    def test_with_ipc_it_is_the_drivers(self):
        run = Run("ipc_driver", "refused", options=["--ipc"], extra={"EXPECTED": "0"})
        self.assertEqual(run.status, 0, run.err)
        self.assertEqual(run.process["handles_given"], 0)


class Order(alike.Order, unittest.TestCase):
    program = "order_program"

    def test_memory_goes_to_another_stream_or_back_behind_what_has_used_it(self):
        self.expect_each(("memory_that_moves", "memory_that_is_given_back"), FAKE_CAPACITY=str(96 << 20))


class Endings(unittest.TestCase):
    def test_a_program_that_is_killed_leaves_its_summary(self):
        run = Run("runtime_static", "crash")
        self.assertEqual(run.status, 128 + 9)
        self.assertEqual(run.calls("cudaMalloc"), 10)
        self.assertFalse(run.process["exited"])
        self.assertIn("was ended by signal 9", run.err)

    def test_a_program_may_exit_from_a_thread_and_without_handlers(self):
        for case, status in (("exit_from_thread", 7), ("quick_exit", 8)):
            run = Run("runtime_shared", case)
            self.assertEqual(run.status, status, run.err)
            self.assertEqual(run.calls("cudaMalloc"), 1)

    def test_a_program_that_may_write_no_large_file_is_not_ended_by_its_trace(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "program.trace")
            run = Run("/bin/sh", "-c", f"ulimit -f 200; exec {PROGRAMS}/runtime_static loop", options=["--trace", path])
            self.assertEqual(run.status, 1, run.err)  # the command's: there is no trace
            self.assertEqual(run.calls("cudaMalloc"), 1000)
            self.assertIn("ends here, after 0 events: File too large", run.err)
            self.assertIn(f"--trace {path}: nothing was recorded, and this file is not written: the recording failed",
                          run.err)

    ECHO = "import sys; print(sys.argv[1:])"

    def test_arguments_are_the_programs_as_they_are(self):
        strange = ["", "[a,b]", "[]", "{}", "--", "--json", "--x=", "a,b", "a\nb", "'", '"']
        self.assertEqual(Run(sys.executable, "-c", self.ECHO, *strange).out, f"{strange}\n")
        for options in ([], ["--conf", "page_size:4MiB"], ["--conf=page_size:4MiB", "--quiet"]):
            ended = subprocess.run([COMMAND, "run", *options, sys.executable, "-c", self.ECHO, *strange],
                                   env=BENCH.environment(True), capture_output=True, text=True, timeout=120)
            self.assertEqual(ended.stdout, f"{strange}\n", ended.stderr)

    def test_a_program_has_to_be_named(self):
        for args in ([], ["--"], ["--quiet"], ["--quiet", "--"]):
            ended = subprocess.run([COMMAND, "run", *args], capture_output=True, text=True, timeout=120)
            self.assertEqual(ended.returncode, 2)
            self.assertIn("a program is to be run: cistern run -- COMMAND", ended.stderr)

    def test_signals_that_the_command_is_sent_go_to_the_program(self):
        waits = "import signal, sys, time\nsignal.signal(int(sys.argv[1]), lambda *_: sys.exit(3))\n" \
                "print('ready', flush=True)\ntime.sleep(60)"
        for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
            with self.subTest(number=number), subprocess.Popen(
                    [COMMAND, "run", "--quiet", "--", sys.executable, "-c", waits, str(int(number))],
                    env=BENCH.environment(True), stdout=subprocess.PIPE) as run:
                run.stdout.readline()
                run.send_signal(number)
                self.assertEqual(run.wait(timeout=120), 3)

    def test_the_status_is_the_programs_where_nobody_waits_for_children(self):
        ended = subprocess.run([COMMAND, "run", "--quiet", "--", "/bin/sh", "-c", "exit 5"],
                               env=BENCH.environment(True), timeout=120,
                               preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        self.assertEqual(ended.returncode, 5)

    def test_a_file_that_cannot_be_written_is_refused_before_the_program_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            ran = os.path.join(folder, "ran")
            for options, why in ((["--json", folder], "--json"), (["--trace", "/nowhere/all.trace"], "--trace"),
                                 (["--trace", "--quiet"], "looks like an option"),
                                 (["--trace", "--"], "looks like an option")):
                with self.subTest(options=options):
                    ended = subprocess.run([COMMAND, "run", *options, "--", "touch", ran],
                                           env=BENCH.environment(True), capture_output=True, text=True, timeout=120)
                    self.assertEqual(ended.returncode, 2, ended.stderr)
                    self.assertIn(why, ended.stderr)
            self.assertEqual(os.listdir(folder), [])

    def test_a_file_that_cannot_be_written_at_the_end_hinders_nothing_else(self):
        with tempfile.TemporaryDirectory() as folder:
            path, gone = os.path.join(folder, "program.trace"), os.path.join(folder, "gone")
            for status in (0, 5):
                os.mkdir(gone)
                command = f"{PROGRAMS}/runtime_static loop; rmdir {gone}; exit {status}"
                ended = subprocess.run(
                    [COMMAND, "run", "--json", f"{gone}/all.json", "--trace", path, "--", "/bin/sh", "-c", command],
                    env=BENCH.environment(True), capture_output=True, text=True, timeout=120)
                self.assertEqual(ended.returncode, status or 1, ended.stderr)
                self.assertIn("all.json: cannot be written: No such file", ended.stderr)
                self.assertIn("cistern: process", ended.stderr)
                self.assertIn(f"--trace {path}: nothing was recorded", ended.stderr)  # a shell allocates nothing
                self.assertFalse(os.path.exists(path))

    def test_who_reads_the_summary_no_more_changes_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            reads, writes = os.pipe()
            os.close(reads)
            ended = subprocess.run([COMMAND, "run", "--", "/bin/sh", "-c", "exit 5"], stderr=writes,
                                   env={**BENCH.environment(True), "TMPDIR": folder}, timeout=120)
            os.close(writes)
            self.assertEqual((ended.returncode, os.listdir(folder)), (5, []))

    def test_the_library_may_lie_where_LD_PRELOAD_could_not_name_it(self):
        with tempfile.TemporaryDirectory(prefix="a blank: $ORIGIN ") as folder:
            library = os.path.join(folder, "libcistern_preload.so")
            os.symlink(LIBRARY, library)
            run = Run("runtime_static", "loop", extra={"CISTERN_PRELOAD": library})
            self.assertEqual(run.calls("cudaMalloc"), 1000)
            run = Run("runtime_static", "loop", extra={"CISTERN_PRELOAD": library, "TMPDIR": folder})
            self.assertEqual(run.status, 1)
            self.assertIn("LD_PRELOAD takes no path with a blank", run.err)
            run = Run("runtime_static", "loop", extra={"CISTERN_PRELOAD": library + ".none"})
            self.assertEqual(run.status, 1)
            self.assertIn("which is not there", run.err)

    def test_a_command_that_is_not_there_is_said(self):
        run = Run("/nowhere/at/all")
        self.assertEqual(run.status, 127)
        self.assertIn("cistern: /nowhere/at/all: No such file", run.err)

    def test_a_program_without_device_memory_has_a_summary_too(self):
        run = Run("/bin/true")
        self.assertEqual(run.status, 0)
        self.assertIn("it asked for no memory that Cistern serves", run.err)

    def test_options_that_are_wrong_run_nothing(self):
        run = Run("/bin/echo", "hello", options=["--conf", "no_such_option:1"])
        self.assertEqual(run.status, 2)
        self.assertEqual(run.out, "")


class Children(unittest.TestCase):
    SHELL = ["/bin/sh", "-c"]

    def test_a_shell_that_becomes_the_program_is_the_program(self):
        run = Run(*self.SHELL, f"exec {PROGRAMS}/runtime_static loop")
        self.assertEqual(run.calls("cudaMalloc"), 1000)

    def test_children_are_left_alone_unless_they_are_followed(self):
        # (It expects what is so under Cistern only.)
        command = f"SERVED= && unset SERVED; {PROGRAMS}/runtime_static loop; true"
        run = Run(*self.SHELL, command)
        self.assertEqual(run.status, 0, run.err)
        self.assertEqual(len(run.summary["processes"]), 1)
        self.assertEqual(run.calls("cudaMalloc"), 0)
        run = Run(*self.SHELL, command, options=["--follow-children"])
        counts = sorted(p["served"]["cudaMalloc"]["calls"] for p in run.summary["processes"])
        self.assertEqual(counts, [0, 1000])

    def test_the_folder_of_the_run_is_found_wherever_a_program_goes(self):
        command = f"cd /; {PROGRAMS}/runtime_static loop; true"
        with tempfile.TemporaryDirectory(dir=".") as folder:
            run = Run(*self.SHELL, command, options=["--follow-children"], extra={"TMPDIR": os.path.relpath(folder)})
        counts = sorted(p["served"]["cudaMalloc"]["calls"] for p in run.summary["processes"])
        self.assertEqual(counts, [0, 1000])

    def test_a_title_that_a_process_gives_itself_is_in_no_record(self):
        run = Run("runtime_static", "title", options=["--follow-children"])
        self.assertEqual(run.status, 0, run.err)
        self.assertEqual([p["program"] for p in run.summary["processes"]], 2 * ["runtime_static"])
        self.assertNotIn("hidden", run.err)

    def test_a_child_of_fork_counts_nothing_in_its_parents_record(self):
        run = Run("runtime_static", "clears_environment")
        self.assertEqual(run.status, 128 + 9, run.err)
        self.assertEqual((run.calls("cudaMalloc"), run.process["exited"]), (0, False))

    def test_a_child_of_fork_is_followed_with_a_record_of_its_own(self):
        run = Run("runtime_static", "forks_first", options=["--follow-children"])
        self.assertEqual(run.status, 0, run.err)
        counts = sorted(p["served"]["cudaMalloc"]["calls"] for p in run.summary["processes"])
        self.assertEqual(counts, [0, 10])


if __name__ == "__main__":
    COMMAND, LIBRARY, DRIVER, PROGRAMS = sys.argv[1:5]
    BENCH = runs.BENCH = runs.Bench(COMMAND, LIBRARY, DRIVER, PROGRAMS)
    unittest.main(argv=[sys.argv[0], *sys.argv[5:]])

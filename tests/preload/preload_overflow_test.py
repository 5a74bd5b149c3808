"""Programs that need more than a device has, on a fake driver, under `cistern run --overflow`.

preload_overflow_test.py COMMAND LIBRARY FOLDER_OF_THE_DRIVER FOLDER_OF_PROGRAMS [unittest arguments]"""

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

MIB = 1 << 20
SMALL = {"FAKE_CAPACITY": str(256 * MIB)}
OVERFLOW = ["--overflow", "512MiB"]
FULL = r"\(fake device\) is full: .* lie in the host's memory, which is slower"


class Bench(unittest.TestCase):
    def run_case(self, case, options=OVERFLOW, extra=None, status=0):
        run = BENCH.run("overflow_program", case, options=options, extra={**SMALL, **(extra or {})})
        if status is not None:
            self.assertEqual(run.status, status, run.err)
        return run

    def assertLay(self, run, least, most):
        """So many MiB lay in the host's memory at the peak, and the summary says so."""
        peak = run.process["host_reserved_peak_bytes"]
        self.assertTrue(least * MIB <= peak <= most * MIB, f"{peak / MIB} MiB")
        self.assertEqual("of that in the host's memory at the peak" in run.err, peak > 0, run.err)


class Overflow(Bench):
    def test_a_program_that_was_out_of_memory_goes_on(self):
        for case in ("beyond", "stream_ordered", "reset"):
            without = self.run_case(case, options=[], status=1)
            self.assertGreater(without.process["out_of_memory"], 0)
            self.assertLay(without, 0, 0)
            for options in ([], ["--strict"]):
                with self.subTest(case=case, options=options):
                    run = self.run_case(case, options=OVERFLOW + options)
                    self.assertEqual(run.process["out_of_memory"], 0)
                    self.assertLay(run, 128, 160)
                    self.assertGreaterEqual(run.process["reserved_peak_bytes"], 384 * MIB)

    def test_the_first_block_there_is_said_once(self):
        self.assertEqual(len([line for line in self.run_case("beyond").err.splitlines() if "is full" in line]), 1)
        self.assertRegex(self.run_case("beyond").err, FULL)

    def test_the_limit_of_the_options_may_be_what_is_full(self):
        run = self.run_case("beyond", options=["--conf", "limit:128MiB", *OVERFLOW], extra={"FAKE_CAPACITY": str(4096 * MIB)})
        self.assertLay(run, 256, 288)

    def test_the_option_may_come_by_the_environment_or_with_others(self):
        for options, extra in (([], {"CISTERN_CONF": "overflow:512MiB"}), (["--conf", "overflow:512MiB"], {}),
                               (OVERFLOW, {"CISTERN_CONF": "limit:200MiB"}),
                               (OVERFLOW, {"CISTERN_CONF": "limit:200MiB,overflow:2MiB"})):
            with self.subTest(options=options, **extra):
                run = self.run_case("beyond", options=options, extra=extra)
                least = 184 if "limit" in str(extra) else 128  # of 384 MiB
                self.assertLay(run, least, least + 32)

    def test_questions_about_such_a_block_are_answered_or_refused(self):
        run = self.run_case("questions")
        self.assertIn("lies in host memory, which has no handle", run.err)
        self.assertEqual(run.passed("requests to share"), 2)
        self.run_case("memory_info")

    def test_what_else_could_serve_comes_first(self):
        for case in ("kept_by_another", "used_by_work", "managed_beside"):
            for options in ([], ["--strict"]):
                with self.subTest(case=case, options=options):
                    self.assertLay(self.run_case(case, options=OVERFLOW + options), 0, 0)

    def test_what_neither_has_room_for_is_refused(self):
        run = self.run_case("too_much", extra={"LEAST": "11", "MOST": "12"})
        self.assertEqual(run.process["out_of_memory"], 1)
        self.assertLay(run, 448, 512)
        run = self.run_case("too_much", extra={"LEAST": "2", "MOST": "4"}, options=[])
        run = self.run_case("too_much", extra={"LEAST": "4", "MOST": "6", "FAKE_HOST_CAPACITY": str(128 * MIB)})
        self.assertLay(run, 64, 128)

    def test_it_works_with_graphs_threads_and_several_devices(self):
        for case in ("in_a_graph", "threads", "two_devices"):
            for options in ([], ["--strict"]):
                with self.subTest(case=case, options=options):
                    self.run_case(case, options=OVERFLOW + options)
        self.assertLay(self.run_case("two_devices"), 256, 320)

    def test_each_process_that_is_followed_has_its_own(self):
        run = self.run_case("children", options=[*OVERFLOW, "--follow-children"])
        parent, *children = run.summary["processes"]
        self.assertEqual(parent["host_reserved_peak_bytes"], 0)
        self.assertEqual(len(children), 2)
        for child in children:
            self.assertGreaterEqual(child["host_reserved_peak_bytes"], 128 * MIB)
        self.assertEqual(run.err.count("of that in the host's memory at the peak"), 2)
        alone = BENCH.run("/bin/sh", "-c", f"{PROGRAMS}/overflow_program beyond", "sh",
                          options=[*OVERFLOW, "--follow-children"], extra=SMALL)
        self.assertEqual(alone.status, 0, alone.err)

    def test_a_report_says_how_much_lay_there(self):
        with tempfile.TemporaryDirectory() as folder:
            page = os.path.join(folder, "program.html")
            run = self.run_case("beyond", options=[*OVERFLOW, "--report", page], status=None)
            if "this build has no page" in run.err:
                self.skipTest("this build makes no pages")
            self.assertEqual(run.status, 0, run.err)
            with open(page) as file:
                data = re.search(r'id="cistern-data"[^>]*>([^<]*)</script>', file.read())[1]
            [recording] = json.loads(gzip.decompress(base64.b64decode(data)))["recordings"]
            self.assertIn("128.00 MiB lay in the host's memory at most", " ".join(recording["notes"]))

    def test_a_trace_has_such_blocks(self):
        with tempfile.TemporaryDirectory() as folder:
            trace = os.path.join(folder, "program.trace")
            self.run_case("beyond", options=[*OVERFLOW, "--trace", trace])
            with open(trace) as file:
                self.assertEqual(sum(line.startswith("a ") for line in file), 12)


class Without(Bench):
    """A device without such pages: the program goes on without overflow, which is said."""

    def test_the_other_kind_of_page_is_tried(self):
        self.assertLay(self.run_case("beyond", extra={"FAKE_REFUSES_HOST": "one"}), 128, 160)

    def test_where_there_are_none_it_is_said_and_the_program_is_served(self):
        for options, extra, why in (([], {"FAKE_REFUSES_HOST": "both"}, "the driver refuses pages of the host's memory: "),
                                    ([], {"FAKE_NO_PAGES": "1"}, "fake device has no pages of the host's memory"),
                                    (["--conf", "backing:segments"], {}, "memory comes in segments")):
            with self.subTest(options=options, **extra):
                run = self.run_case("too_much", options=OVERFLOW + options, extra={"LEAST": "2", "MOST": "4", **extra})
                self.assertEqual(run.err.count(f"cistern: overflow is off, and the program goes on without: {why}"), 1,
                                 run.err)
                self.assertEqual(run.process["out_of_memory"], 1)
                self.assertLay(run, 0, 0)


class Refusals(unittest.TestCase):
    def test_what_the_host_does_not_admit_or_is_no_size_is_refused_before_the_program_starts(self):
        for options, extra, why in (
                (["--overflow", "900TiB"], {}, "--overflow: 900.00 TiB are more than the"),
                (["--conf", "overflow:900TiB"], {}, "--conf, overflow: 900.00 TiB are more than the"),
                ([], {"CISTERN_CONF": "overflow:900TiB"}, "CISTERN_CONF, overflow: 900.00 TiB are more than the"),
                (["--overflow", "much"], {}, "--overflow cannot be 'much'; allowed: a size from 2 MiB, as 64GiB"),
                (["--overflow", "none"], {}, "--overflow cannot be 'none'"), (["--overflow", "0"], {}, "cannot be '0'"),
                (["--overflow", "1GiB,limit:2GiB"], {}, "cannot be '1GiB,limit:2GiB'"),
                (["--overflow", "--"], {}, "--overflow cannot be '--'"), (["--overflow", ""], {}, "--overflow: needs a value"),
                (["--overflow", "64MiB", "--conf", "limits:1"], {}, "--conf, column 1")):
            with self.subTest(options=options, **extra):
                ended = subprocess.run([COMMAND, "run", *options, "--", "/bin/echo", "ran"], capture_output=True, text=True,
                                       env={**BENCH.environment(True), **extra}, timeout=120)
                self.assertEqual((ended.returncode, ended.stdout), (2, ""), ended.stderr)
                self.assertIn(why, ended.stderr)
        ended = subprocess.run([COMMAND, "run", "--overflow"], capture_output=True, text=True, timeout=120)
        self.assertEqual(ended.returncode, 2)
        self.assertIn("--overflow", ended.stderr)


if __name__ == "__main__":
    COMMAND, LIBRARY, DRIVER, PROGRAMS = sys.argv[1:5]
    BENCH = runs.Bench(COMMAND, LIBRARY, DRIVER, PROGRAMS)
    unittest.main(argv=[sys.argv[0], *sys.argv[5:]])

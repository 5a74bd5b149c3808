"""Cases of `cistern run` that are the same on every vendor's programs. A group of a test derives from one of these,
and names its program."""

import os

import runs

PLAIN_AND_STRICT = ([], ["--strict"])


class Group:
    program = ""

    def expect(self, case, options=(), program=None, **variables):
        """A run that ends well."""
        run = runs.BENCH.run(program or self.program, case, options=options, extra=variables)
        self.assertEqual(run.status, 0, run.err)
        return run

    def expect_alone(self, case, program=None):
        ended = runs.BENCH.alone(program or self.program, case)
        self.assertEqual(ended.returncode, 0, ended.stderr)

    def expect_each(self, cases, **variables):
        for case in cases:
            with self.subTest(case=case):
                self.expect(case, **variables)


class Cancelled(Group):
    def test_a_thread_is_cancelled_in_the_driver_and_not_in_cistern(self):
        for case in ("while_waiting", "while_launching", "while_allocating"):
            for options in PLAIN_AND_STRICT:
                with self.subTest(case=case, options=options):
                    self.expect_alone(case)
                    self.expect(case, options)


class Pools(Group):
    """Cistern stands in for the default pool of a device, as long as that is current and has no properties."""

    attributes = ""  # the program that asks for them
    options_of_attributes = [[]]

    def test_the_pool_that_the_program_has_chosen_is_asked(self):
        for case in ("current", "access"):
            with self.subTest(case=case):
                self.expect_alone(case)
                self.expect(case)

    def test_the_default_pool_says_of_itself_what_the_driver_would(self):
        for case in ("used", "reserved", "other_memory", "peaks", "trims", "wrong_values", "settings", "other_device",
                     "of_two", "child"):
            for options in self.options_of_attributes:
                with self.subTest(case=case, options=options):
                    self.expect_alone(case, self.attributes)
                    self.expect(case, options, self.attributes)


class Pressure(Group):
    """A request is refused only where there is no room when Cistern has given back what it keeps."""

    little = {"FAKE_CAPACITY": str(256 << 20)}
    two_at_once = ("two_managed",)
    options_of_loop = PLAIN_AND_STRICT

    def test_it_is_asked_for_again_when_another_thread_has_given_back(self):
        for case in self.two_at_once:
            for options in PLAIN_AND_STRICT:
                with self.subTest(case=case, options=options):
                    self.expect(case, options, **self.little)

    def test_a_loop_without_work_waits_for_nothing(self):
        for options in self.options_of_loop:
            with self.subTest(options=options):
                run = self.expect("loop_without_work", options)
                self.assertLessEqual(run.process["reserved_peak_bytes"], 64 << 20)

    def test_memory_that_work_uses_is_waited_for(self):
        for options in PLAIN_AND_STRICT:
            with self.subTest(options=options):
                self.expect("used_by_work", options)

    def test_what_does_not_fit_is_refused(self):
        run = self.expect("too_much", **self.little)
        self.assertEqual(run.process["out_of_memory"], 1)


class Order(Group):
    """What is freed in use is in order before it is used again, on the device, for no more calls than it takes."""

    seeds = range(40)
    kinds = ({},)  # variables of the environment, for random programs

    def test_the_order_costs_what_it_must(self):
        self.expect_each(("without_work", "one_stream", "one_stream_that_is_waited_for", "two_streams",
                          "two_streams_at_once", "no_more_than_that", "freed_in_a_capture"))

    def test_it_holds_between_threads_too(self):
        self.expect_each(("while_launching", "marker_after_marker", "while_waiting"))

    def expect_random(self, **variables):
        runs_of_all = []
        for seed in self.seeds:
            for case in ("random", "random_threads"):
                with self.subTest(case=case, seed=seed, **variables):
                    runs_of_all.append(self.expect(case, SEED=str(seed), **variables))
        return runs_of_all

    def test_random_programs_have_no_races(self):
        for variables in self.kinds:
            self.expect_random(**variables)

    def test_neither_have_those_with_little_memory(self):
        ended = self.expect_random(FAKE_CAPACITY=str(24 << 20))
        self.assertGreater(sum(run.process["out_of_memory"] for run in ended), 0)  # too little for some

    def test_it_is_the_order_that_keeps_them_from_races(self):
        found = sum(runs.BENCH.run(self.program, "random", extra={
            "SEED": str(seed), "FAKE_FORGETS_WAITS": "1"}).status != 0 for seed in range(20))
        self.assertGreaterEqual(found, 8)  # a program with one stream has none

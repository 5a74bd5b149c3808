"""`cistern run` beside other users, namespaces, lost rights and other preloaded libraries, on the fake driver.

What needs root, or a namespace that this machine does not allow, is skipped and said.

rights_test.py COMMAND LIBRARY FOLDER_OF_THE_DRIVER FOLDER_OF_PROGRAMS [unittest arguments]"""

import glob
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

import runs
import sides

COMMAND, LIBRARY, DRIVER, PROGRAMS = sys.argv[1:5]
BENCH = runs.Bench(COMMAND, LIBRARY, DRIVER, PROGRAMS)
OTHER, THIRD = 4711, 4712  # users whom nobody is


def works(*command, user=None):
    try:
        return subprocess.run(command, user=user, group=user, capture_output=True, timeout=60).returncode == 0
    except (OSError, PermissionError):
        return False


def other_users():
    """Whether this process may become another user, who may then run what was built here."""
    return os.geteuid() == 0 and works("/bin/sh", "-c", f"test -x {COMMAND} && test -r {LIBRARY}", user=OTHER)


def needs_users(test):
    return unittest.skipUnless(other_users(), "it takes root, and a build that other users may read")(test)


class Giver(sides.Giver):
    def __init__(self, **how):
        super().__init__(BENCH, **how)


def opened(giver, **how):
    return sides.opened(BENCH, giver, **how)


def flood(name, user):
    """A process of that user that connects ten thousand times, and keeps the last few hundred."""
    child = os.fork()
    if child != 0:
        return child
    status = 1
    try:
        os.setgid(user)
        os.setuid(user)
        kept = []
        for _ in range(10_000):
            one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            one.connect(b"\0" + name)
            kept.append(one)
            if len(kept) > 500:
                kept.pop(0).close()
        status = 0
    finally:
        os._exit(status)


class Users(unittest.TestCase):
    @needs_users
    def test_sharing_is_refused_both_ways_between_two_users(self):
        for owner, asker in ((None, OTHER), (OTHER, None), (OTHER, THIRD)):
            with self.subTest(owner=owner, asker=asker), Giver(user=owner) as giver:
                out, err = opened(giver, user=asker)
                self.assertEqual(out, "refused 1", err)
                self.assertIn("another user's", err)
                self.assertEqual(opened(giver, user=owner)[0], "opened 0")

    @needs_users
    def test_a_flood_of_another_users_connections_costs_its_owner_nothing(self):
        with Giver() as giver:
            self.assertEqual(opened(giver)[0], "opened 0")
            folder = f"/proc/{giver.pid()}"
            before = [len(os.listdir(f"{folder}/{each}")) for each in ("task", "fd")]
            flooding = flood(giver.name(), OTHER)
            most, ended = [0, 0], 0
            while ended == 0:
                ended, status = os.waitpid(flooding, os.WNOHANG)
                now = [len(os.listdir(f"{folder}/{each}")) for each in ("task", "fd")]
                most = [max(pair) for pair in zip(most, now)]
            self.assertEqual(status, 0)
            self.assertLessEqual(most[0], before[0])  # no thread
            self.assertLessEqual(most[1], before[1] + 1)  # the connection that is being closed
            self.assertEqual(opened(giver)[0], "opened 0")

    @needs_users
    @unittest.skipIf(os.statvfs("/tmp").f_flag & os.ST_NOSUID, "/tmp is mounted nosuid")
    def test_a_program_with_rights_of_another_user_is_not_told_where_to_write(self):
        with tempfile.TemporaryDirectory(dir="/tmp") as folder:
            records = os.path.join(folder, "records")
            os.chmod(folder, 0o755)
            os.mkdir(records)
            os.chmod(records, 0o777)
            for rights, made in ((0o4755, 0), (0o755, 1)):
                program = os.path.join(folder, "linked")
                subprocess.run(["cp", BENCH.path("runtime_linked"), program], check=True)
                os.chmod(program, rights)
                env = {**BENCH.environment(False), "CISTERN_RUN_FOLDER": records}
                subprocess.run([program, "none"], env=env, capture_output=True, user=OTHER, group=OTHER)
                self.assertEqual(len(os.listdir(records)), made)

    @needs_users
    @unittest.skipIf(os.statvfs("/tmp").f_flag & os.ST_NOSUID, "/tmp is mounted nosuid")
    def test_a_program_with_rights_of_another_user_is_left_alone_and_that_is_said(self):
        with tempfile.TemporaryDirectory(dir="/tmp") as folder:
            os.chmod(folder, 0o755)
            program = os.path.join(folder, "setuid")
            subprocess.run(["cp", BENCH.path("rights_program"), program], check=True)
            os.chmod(program, 0o4755)
            ended = subprocess.run([COMMAND, "run", "--", program, "none"], capture_output=True, text=True,
                                   env={**BENCH.environment(False), "TMPDIR": "/tmp"}, user=OTHER, group=OTHER)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertIn("there is no summary", ended.stderr)
        self.assertIn("rights that LD_PRELOAD does not pass", ended.stderr)


class Namespaces(unittest.TestCase):
    def unshared(self, *options):
        command = ["unshare", *options]
        if not works(*command, "true"):
            self.skipTest(f"{' '.join(command)} is not allowed here")
        return command

    def test_two_pid_namespaces_share_though_their_processes_have_the_same_number(self):
        behind = self.unshared("-p", "-f", "--mount-proc", *([] if os.geteuid() == 0 else ["-r"]))
        with Giver(behind=behind) as giver, Giver(behind=behind) as second:
            self.assertEqual(*(each.name().split(b"-")[1] for each in (giver, second)))
            for each in (giver, second):
                self.assertEqual(opened(each, behind=behind), ("opened 0", ""))

    def test_another_network_namespace_is_said(self):
        behind = self.unshared("-n", *([] if os.geteuid() == 0 else ["-r"]))
        with Giver() as giver:
            out, err = opened(giver, behind=behind)
            self.assertEqual(out, "refused 1", err)
            self.assertIn("or is in another network namespace", err)

    def test_one_user_shares_between_user_namespaces_under_any_number(self):
        known = self.unshared("-U", "--map-user=500", "--map-group=500")
        with Giver(behind=known) as giver:
            self.assertEqual(opened(giver), ("opened 0", ""))
            self.assertEqual(opened(giver, behind=self.unshared("-U", "-r")), ("opened 0", ""))

    @needs_users
    def test_two_users_that_are_both_root_in_namespaces_of_their_own_share_nothing(self):
        behind = self.unshared("-U", "-r")
        if not works(*behind, "true", user=OTHER):
            self.skipTest("a user may make no namespace here")
        with Giver(behind=behind, user=OTHER) as giver:
            out, err = opened(giver, behind=behind, user=THIRD)
            self.assertEqual(out, "refused 1", err)
            self.assertIn("another user's", err)
            self.assertEqual(opened(giver, behind=behind, user=OTHER)[0], "opened 0")

    def test_the_overflow_user_shares_nothing_and_opens_nothing(self):
        behind = self.unshared("-U")
        with Giver(behind=behind) as giver:
            self.assertEqual(giver.handle, "code 801")
        self.assertIn("overflow user", giver.said)
        with Giver() as giver:
            out, err = opened(giver, behind=behind)
            self.assertEqual(out, "refused 1", err)
            self.assertIn("overflow user", err)


class Rights(unittest.TestCase):
    def served(self, case, *options, **extra):
        run = BENCH.run("rights_program", case, options=options, extra=extra)
        self.assertEqual(run.status, 0, run.err)
        return run

    def test_a_program_that_gives_up_rights_goes_on_being_served_and_counted(self):
        cases = ["no_new_rights", "no_files", "no_sockets"]
        if os.geteuid() == 0:
            cases += ["user", "root", "no_capabilities"]
        with tempfile.TemporaryDirectory() as jail:
            for case in cases:
                with self.subTest(case=case):
                    ended = BENCH.alone("/usr/bin/env", f"ROOT={jail}", BENCH.path("rights_program"), case)
                    self.assertEqual(ended.returncode, 0, ended.stderr)
                    run = self.served(case, ROOT=jail)
                    self.assertTrue(run.process["exited"])
                    self.assertEqual(run.calls("cudaMalloc"), run.calls("cudaFree"))
                    self.assertGreater(run.calls("cudaMalloc"), 400)

    def test_a_trace_ends_where_its_file_cannot_be_opened_any_more_and_the_program_goes_on(self):
        cases = {"no_files": "Operation not permitted"}
        if os.geteuid() == 0:
            cases.update(user="Permission denied", root="No such file")
        for case, why in cases.items():
            with self.subTest(case=case), tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "program.trace")
                run = self.served(case, "--trace", path, LONG="1", ROOT=folder)
                self.assertIn(f"ends here, after 32768 events: {why}", run.err)
                self.assertGreater(run.calls("cudaMalloc"), 16384)
                with open(path) as trace:
                    self.assertEqual(sum(line[0] in "af" for line in trace), 32768)

    def test_memory_is_not_shared_where_no_socket_may_be_made_and_that_is_said(self):
        run = self.served("no_sockets")
        self.assertIn("a unix socket to pass CUDA memory by: Operation not permitted", run.err)
        self.assertEqual(run.passed("requests to share"), 1)

    def test_a_process_that_cannot_make_its_record_runs_without_one(self):
        program = BENCH.path("rights_program")
        run = BENCH.run(program, "without", "room", BENCH.path("runtime_static"), "loop")
        self.assertEqual(run.status, 0, run.err)
        self.assertRegex(run.err, "there is no summary of process .*: Operation not permitted")
        run = BENCH.run(program, "without", "sockets", BENCH.path("runtime_static"), "loop")
        self.assertEqual((run.status, run.calls("cudaMalloc")), (0, 1000), run.err)

    def test_a_folder_that_is_removed_meanwhile_costs_only_the_summary(self):
        run = BENCH.run("/bin/sh", "-c", 'rm -r "$CISTERN_RUN_FOLDER"; exit 5')
        self.assertEqual(run.status, 5, run.err)
        self.assertIn("the run's folder was removed", run.err)
        self.assertEqual(run.summary["processes"], [])

    @needs_users
    @unittest.skipIf(shutil.which("setpriv") is None, "there is no setpriv")
    def test_a_program_that_is_another_users_by_exec_is_served_without_a_record(self):
        run = BENCH.run("/usr/bin/env", "setpriv", f"--reuid={OTHER}", f"--regid={OTHER}", "--clear-groups",
                        BENCH.path("runtime_static"), "loop")  # which expects that it is served
        self.assertEqual(run.status, 0, run.err)
        self.assertRegex(run.err, "there is no summary of process .*: Permission denied")

    @needs_users
    def test_who_shares_and_then_becomes_another_user_is_refused_as_both(self):
        for what, expected in (("before", "refused 1"), ("after", "opened 0")):
            with self.subTest(shares=what), Giver(extra={"BECOMES": str(OTHER), "SHARES": what}) as giver:
                self.assertEqual(opened(giver, user=OTHER)[0], expected)
                self.assertEqual(opened(giver)[0], "refused 1")


class Beside(unittest.TestCase):
    """Another library stands before the program as well."""

    def preloaded(self, *libraries):
        return {"LD_PRELOAD": ":".join(libraries)}

    def test_a_library_that_hooks_dlsym_and_dlopen_is_called_as_without_cistern(self):
        beside = {**self.preloaded(f"{PROGRAMS}/beside/libbeside.so"), "BESIDE_SAYS": "1"}
        alone = subprocess.run([BENCH.path("driver_program"), "deep_bind"], capture_output=True, text=True,
                               env={**BENCH.environment(False), **beside})
        self.assertEqual(alone.stderr, "beside: malloc 1 dlsym 1 dlopen 1\n")
        for program, case in (("driver_program", "deep_bind"), ("driver_program", "names"), ("runtime_static", "loop"),
                              ("runtime_shared", "threads"), ("ipc_driver", "twice")):
            with self.subTest(program=program, case=case):
                run = BENCH.run(program, case, extra=beside)
                self.assertEqual(run.status, 0, run.err)
                if program == "driver_program":
                    self.assertIn("beside: malloc 1 dlsym 1 dlopen 1\n", run.err)

    def test_other_allocators_of_host_memory_may_stand_beside_it(self):
        names = ("libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2")
        found = [path for name in names for path in (glob.glob(f"/usr/lib*/{name}") + glob.glob(f"/usr/lib/*/{name}"))[:1]]
        if not found:
            self.skipTest("none of jemalloc, tcmalloc and mimalloc is installed")
        for library in found:
            for program, case in (("runtime_static", "loop"), ("runtime_shared", "threads"), ("runtime_static", "forks"),
                                  ("ipc_driver", "threads"), ("runtime_static", "destructors")):
                with self.subTest(library=library, program=program, case=case):
                    run = BENCH.run(program, case, options=["--follow-children"], extra=self.preloaded(library))
                    self.assertEqual(run.status, 0, run.err)

    def test_cistern_may_be_named_already_and_a_library_that_is_not_there_hinders_nothing(self):
        for libraries in ([LIBRARY], ["/nowhere/none.so"], [LIBRARY, "/nowhere/none.so", LIBRARY]):
            with self.subTest(libraries=libraries):
                run = BENCH.run("runtime_static", "loop", extra=self.preloaded(*libraries))
                self.assertEqual((run.status, run.calls("cudaMalloc")), (0, 1000), run.err)

    def test_a_run_inside_a_run_has_a_summary_of_its_own(self):
        for options in ([], ["--follow-children"]):
            with self.subTest(options=options):
                run = BENCH.run(COMMAND, "run", "--", BENCH.path("runtime_static"), "loop", options=options)
                self.assertEqual(run.status, 0, run.err)
                self.assertIn("served      1000 cudaMalloc", run.err)

    def test_libraries_are_found_by_the_runpath_of_who_loads_them(self):
        ended = BENCH.alone("runpath_program")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        run = BENCH.run("runpath_program")
        self.assertEqual((run.status, run.calls("cudaMalloc")), (0, 10), run.err)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[5:]])

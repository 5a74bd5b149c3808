"""`cistern sleep` empties the caches of a process that asks for it (CISTERN_SLEEPABLE), and of no other.

caches_test.py COMMAND DRIVERS PROGRAMS"""

import contextlib
import os
import pathlib
import re
import resource
import shutil
import socket
import subprocess
import sys
import unittest

import bench

COMMAND, DRIVERS, PROGRAMS = sys.argv[1:4]
RESERVED, USED = 64, 8  # MiB of one allocator: sleepable_program.cpp


def name_of(program):
    names = pathlib.Path("/proc/net/unix").read_text()
    return re.search(rf"@(cistern-sleep-{program.pid}-\d+)\n", names)[1]


def bytes_from(name):
    """How many bytes the socket of that name answers to a request."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asker:
        try:
            asker.settimeout(20)
            asker.connect("\0" + name)
            asker.send(0x317974706d656331.to_bytes(8, sys.byteorder))
            return len(asker.recv(100))
        except (BrokenPipeError, ConnectionResetError):
            return 0


class Caches(bench.Case):
    def setUp(self):
        self.machine = bench.Machine(COMMAND, DRIVERS, PROGRAMS)
        self.addCleanup(self.machine.close)

    def talker(self, sleepable="1", before=()):
        program = bench.Talker(*before, f"{PROGRAMS}/sleepable_program",
                               env=self.machine.environment(CISTERN_SLEEPABLE=sleepable))
        self.addCleanup(program.__exit__)
        self.machine.has_cuda(program.pid)
        return program

    def slept(self, pid, *options, **environment):
        """The part of the command's words that tells of the caches; the process is awake again."""
        self.machine.has_cuda(pid)
        ended = self.machine.run("sleep", *options, pid, **environment)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        self.assertEqual(self.machine.state(pid), bench.Machine.SAVED)
        self.machine.has_cuda(pid)
        return re.search("; its caches (.*)\n", ended.stdout)[1]

    def sockets(self, pid):
        folder = f"/proc/{pid}/fd"
        links = []
        for each in os.listdir(folder):
            with contextlib.suppress(FileNotFoundError):  # closed meanwhile
                links.append(os.readlink(f"{folder}/{each}"))
        return [link for link in links if link.startswith("socket:")]

    def threads(self, pid):
        return len(os.listdir(f"/proc/{pid}/task"))

    def test_what_is_cached_is_given_back_and_what_is_used_stays(self):
        program = self.talker()
        self.assertEqual(program.ask("make"), RESERVED)
        self.assertEqual(self.slept(program.pid), "gave back 56.00 MiB")
        self.assertEqual(program.ask("stats"), USED)
        self.assertEqual(program.ask("cache"), RESERVED)
        self.assertEqual(self.slept(program.pid), "gave back 56.00 MiB")
        self.assertEqual(program.end(), (0, ""))

    def test_all_allocators_that_there_are(self):
        program = self.talker()
        for _ in range(3):
            program.ask("make")
        self.assertEqual(program.ask("drop"), 2 * RESERVED)
        self.assertEqual(self.slept(program.pid), "gave back 112.00 MiB")
        program.ask("drop")
        program.ask("drop")
        self.assertEqual(self.slept(program.pid), "gave back 0 B")
        self.assertEqual(program.end(), (0, ""))

    def test_a_process_that_does_not_ask_has_neither_socket_nor_thread(self):
        for said in ("", "0"):
            program = self.talker(said)
            before = self.threads(program.pid)
            program.ask("make")
            self.assertEqual((self.sockets(program.pid), self.threads(program.pid)), ([], before))
            self.assertIn("were not emptied: it does not run on Cistern, or was started without CISTERN_SLEEPABLE=1",
                          self.slept(program.pid))
            self.assertEqual(program.ask("stats"), RESERVED)

    def test_there_is_one_thread_from_the_first_allocator_on(self):
        program = self.talker()
        before = program.ask("stats"), self.threads(program.pid)
        self.assertEqual((self.sockets(program.pid), before[1]), ([], self.threads(program.pid)))
        program.ask("make")
        program.ask("make")
        self.assertEqual((len(self.sockets(program.pid)), self.threads(program.pid)), (1, before[1] + 1))

    def test_a_child_of_fork_answers_for_its_own(self):
        program = self.talker()
        program.ask("make")
        child = program.ask("fork")
        self.until(lambda: self.sockets(child) == [])
        self.assertIn("were not emptied", self.slept(child))
        self.assertEqual(self.slept(program.pid), "gave back 56.00 MiB")
        self.assertEqual(program.ask("make"), RESERVED)  # the child reads it
        self.assertEqual(self.slept(child), "gave back 56.00 MiB")

    def test_a_program_that_closes_all_files_goes_on(self):
        program = self.talker()
        program.ask("make")
        self.assertEqual(program.ask("close"), RESERVED)
        self.slept(program.pid)  # the thread waits on the file still, or has seen that it is gone
        self.assertIn("were not emptied", self.slept(program.pid))
        self.assertEqual(program.end(), (0, ""))

    def test_another_program_under_that_name_is_not_asked(self):
        program = self.talker("0")
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as stranger:
            stranger.bind(f"\0cistern-sleep-{program.pid}-1")
            stranger.listen()
            self.assertIn("does not run on Cistern", self.slept(program.pid))

    def test_a_process_that_does_not_answer_is_put_to_sleep_all_the_same(self):
        silent = ("import os, socket, sys; s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET);"
                  "s.bind(f'\\0cistern-sleep-{os.getpid()}-1'); s.listen(); print(1, flush=True); sys.stdin.read()")
        process = subprocess.Popen([sys.executable, "-c", silent], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        process.stdout.readline()
        self.assertEqual(self.slept(process.pid, "--timeout", "0.5"), "were not emptied: it did not answer within 0.5 s")
        process.kill()
        process.communicate()

    def test_nonsense_gets_no_answer_and_does_no_harm(self):
        program = self.talker()
        program.ask("make")
        name = name_of(program)
        for word in (b"", b"x", b"12345678", b"y" * 4096):
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asker:
                asker.connect("\0" + name)
                asker.settimeout(20)
                if word:
                    asker.send(word)
                else:
                    asker.shutdown(socket.SHUT_WR)
                self.assertEqual(asker.recv(100), b"")
        self.assertEqual(program.ask("stats"), RESERVED)
        self.assertEqual(self.slept(program.pid), "gave back 56.00 MiB")

    @unittest.skipUnless(os.geteuid() == 0, "to become another user takes root")
    def test_another_user_gets_no_answer(self):
        program = self.talker()
        program.ask("make")
        name = name_of(program)

        def answer(user):
            """How many bytes a process of that user gets."""
            child = os.fork()
            if child == 0:
                os.setuid(user)
                os._exit(bytes_from(name))
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        self.assertEqual(answer(4711), 0)
        self.assertEqual(program.ask("stats"), RESERVED)
        self.assertEqual(answer(0), 32)
        self.assertEqual(program.ask("stats"), USED)

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("unshare"), "new namespaces take root")
    def test_a_process_with_a_number_of_its_own_is_reached_and_one_on_another_network_is_not(self):
        for options, said in ((("--pid",), "gave back 56.00 MiB"),
                              (("--net",), "were not emptied: it is in another network namespace")):
            program = self.talker(before=("unshare", *options, "--fork"))
            program.ask("make")
            children = pathlib.Path(f"/proc/{program.pid}/task/{program.pid}/children").read_text().split()
            self.assertEqual(self.slept(int(children[0])), said)

    def test_a_process_that_cannot_listen_says_so_and_goes_on(self):
        if b"__ubsan" in pathlib.Path(f"{PROGRAMS}/sleepable_program").read_bytes():
            self.skipTest("the sanitizer of undefined behaviour opens files of its own")
        program = self.talker()
        program.ask("stats")
        resource.prlimit(program.pid, resource.RLIMIT_NOFILE, (3, 3))
        self.assertEqual(program.ask("make"), RESERVED)
        status, said = program.end()
        self.assertEqual(status, 0)
        self.assertRegex(said, "^cistern: CISTERN_SLEEPABLE is set, but there is no unix socket: Too many open files; "
                         "`cistern sleep` will not empty this process's caches\n$")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])

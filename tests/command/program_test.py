"""The `cistern` program with the streams that a shell gives it: closed, full, a pipe, a terminal.

program_test.py PROGRAM"""

import contextlib
import fcntl
import functools
import gzip
import os
import pty
import subprocess
import sys
import tempfile
import termios
import unittest

TRACE = b"a 1024 0 0\nf 0 10\n"
REPLAY = ["replay", "-", "--device", "sim"]
LINES = [["--help"], ["--version"], ["options"], ["options", "--markdown"], ["replay", "--help"],
         REPLAY, [*REPLAY, "--json"], [*REPLAY, "--csv"]]


def shell(redirection, *args):
    """Runs the program with a redirection that only a shell can say."""
    return subprocess.run(["sh", "-c", f'exec "$0" "$@" {redirection}', PROGRAM, *args],
                          input=TRACE, capture_output=True)


def on_a_terminal(**environment):
    ours, theirs = pty.openpty()
    env = {**os.environ, "TERM": "xterm", **environment}
    if "NO_COLOR" not in environment:
        env.pop("NO_COLOR", None)
    program = subprocess.Popen([PROGRAM, *REPLAY], stdin=subprocess.PIPE, stdout=theirs,
                               stderr=subprocess.DEVNULL, env=env)
    os.close(theirs)
    program.stdin.write(TRACE)
    program.stdin.close()
    text = b""
    try:
        while part := os.read(ours, 4096):
            text += part
    except OSError:
        pass  # the other end is closed
    os.close(ours)
    assert program.wait() == 0
    return text


def measured(content):
    """A replay of the content, and the most memory that it took, in KiB."""
    shown = "import resource; print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    result = subprocess.run(
        [sys.executable, "-c",
         "import subprocess, sys; r = subprocess.run(sys.argv[1:], input=sys.stdin.buffer.read());"
         + f"{shown}; sys.exit(r.returncode)", PROGRAM, *REPLAY],
        input=content, capture_output=True)
    return result, int(result.stdout)


class Program(unittest.TestCase):
    def test_an_output_that_is_full_or_closed_is_an_error(self):
        for args in LINES:
            for redirection, why in [(">/dev/full", b"No space left"), (">&-", b"Bad file")]:
                with self.subTest(args=args, redirection=redirection):
                    result = shell(redirection, *args)
                    self.assertEqual(result.returncode, 1)
                    self.assertIn(b"cistern: the output cannot be written: " + why, result.stderr)

    def test_a_file_that_is_named_like_a_list_is_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "[a,b]"), "wb") as file:
                file.write(TRACE)
            result = subprocess.run([os.path.abspath(PROGRAM), "replay", "[a,b]", "--device", "sim", "--json"], cwd=folder,
                                    capture_output=True)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn(b'"trace":"[a,b]"', result.stdout)

    def test_what_is_killed_leaves_no_torn_trace_and_no_empty_picture(self):
        with tempfile.TemporaryDirectory() as folder:
            traces = os.path.join(folder, "traces")
            os.mkdir(traces)
            program = subprocess.Popen([PROGRAM, "generate", "all:0-50", "--to", traces],
                                       stdout=subprocess.PIPE)
            program.stdout.readline()  # the first is there, the next is being written
            program.kill()
            program.communicate()
            for name in os.listdir(traces):
                if name.endswith(".trace.gz"):
                    with gzip.open(os.path.join(traces, name)) as file:
                        file.read()  # to its end
            picture = os.path.join(folder, "picture.svg")
            replay = subprocess.Popen([PROGRAM, *REPLAY, "--plot", picture], stdin=subprocess.PIPE,
                                      stdout=subprocess.DEVNULL)
            replay.kill()  # it waits for its trace
            replay.communicate()
            self.assertFalse(os.path.exists(picture))

    def test_long_work_shows_on_a_terminal_what_time_is_left_and_nothing_elsewhere(self):
        long = [PROGRAM, "replay", "--generate", "all:0-200", "--device", "sim", "--json"]
        for args in [long, [PROGRAM, "generate", "all:0-200"]]:
            ours, theirs = pty.openpty()
            with tempfile.TemporaryDirectory() as folder:
                program = subprocess.Popen(args, stdout=subprocess.DEVNULL, stderr=theirs, cwd=folder)
                os.close(theirs)
                text = b""
                while b" left" not in text:  # the line comes again and again
                    text += os.read(ours, 4096)
                program.kill()
                program.wait()
            os.close(ours)
            line = text.decode(errors="replace").split("\r")[-1].split("\x1b[K")[-1]
            self.assertLessEqual(len(line), 80)
            self.assertRegex(text.decode(errors="replace"), r"\d %  \d+ (s|min|h) left")
        ours, theirs = pty.openpty()
        program = subprocess.Popen(long, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        named = subprocess.Popen([*long, f"--progress={os.ttyname(theirs)}"], stdout=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE)
        text = b""
        while b" left" not in text:
            text += os.read(ours, 4096)
        for each in (program, named):
            each.kill()
            self.assertEqual(each.communicate()[1], b"")
        os.close(theirs)
        os.close(ours)

    def test_progress_is_shown_on_terminals_alone(self):
        with tempfile.NamedTemporaryFile() as file:
            result = shell("", *REPLAY, f"--progress={file.name}")
            self.assertEqual(result.returncode, 2)
            self.assertIn(b"must be a terminal", result.stderr)
            self.assertEqual(file.read(), b"")

    def test_a_file_that_may_not_grow_is_an_error_and_leaves_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            result = subprocess.run(["/bin/sh", "-c", 'ulimit -f 1; exec "$@"', "-", PROGRAM, "generate", "train:1",
                                     "--to", folder], capture_output=True, text=True)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn("File too large", result.stderr)
            self.assertEqual(os.listdir(folder), [])

    def test_what_is_killed_while_it_writes_leaves_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            program = subprocess.Popen([PROGRAM, "generate", "train:1-40", "--to", folder], stdout=subprocess.PIPE)
            program.stdout.readline()  # one is written, and the next begun
            program.kill()
            program.communicate()
            self.assertEqual([name for name in os.listdir(folder) if not name.endswith(".trace.gz")], [])

    def test_no_file_takes_the_place_of_a_closed_output(self):
        result = shell(">&- 2>&-", *REPLAY)
        self.assertEqual(result.returncode, 1)

    def test_the_standard_input_is_a_trace_plain_or_gzip(self):
        for content in [TRACE, gzip.compress(TRACE)]:
            result = subprocess.run([PROGRAM, *REPLAY, "--json"], input=content,
                                    capture_output=True)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn(b'"trace":"stdin"', result.stdout)

    def test_errors_in_the_standard_input_name_it(self):
        result = subprocess.run([PROGRAM, *REPLAY], input=b"a x 0 0\n", capture_output=True)
        self.assertEqual(result.returncode, 2)
        self.assertIn(b"cistern: standard input:1:3: expected", result.stderr)
        self.assertEqual(shell("<&-", *REPLAY).returncode, 2)

    def test_gzip_that_unpacks_to_too_much_takes_little_memory(self):
        bomb = gzip.compress(b"a 1 0 0\n" * (400 << 17), 1)
        result, kib = measured(bomb)
        self.assertEqual(result.returncode, 2)
        self.assertIn(b"gzip data unpack to more than 8.00 MiB", result.stderr)
        self.assertLess(kib, 768 << 10)  # a sanitizer's own included

    def test_a_stream_that_is_no_trace_is_refused_at_its_first_bytes(self):
        for stream in (bytes(1 << 20), b"y\n" * (1 << 19)):
            with self.subTest(stream=stream[:2]):
                program = subprocess.Popen([PROGRAM, *REPLAY], stdin=subprocess.PIPE,
                                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                with self.assertRaises(BrokenPipeError):  # it does not wait for the end
                    while True:
                        program.stdin.write(stream)
                with contextlib.suppress(BrokenPipeError):
                    program.stdin.close()
                program.stdin = None
                _, complaint = program.communicate()
                self.assertEqual(program.returncode, 2)
                self.assertIn(b"standard input:1:1: expected a Cistern trace", complaint)

    def test_the_first_bytes_of_a_pipe_may_come_one_at_a_time(self):
        program = subprocess.Popen([PROGRAM, *REPLAY, "--json"], stdin=subprocess.PIPE, bufsize=0,
                                   stdout=subprocess.PIPE)
        packed = gzip.compress(TRACE)
        for at in range(4):
            program.stdin.write(packed[at : at + 1])
            while int.from_bytes(fcntl.ioctl(program.stdin, termios.FIONREAD, bytes(4)), sys.byteorder):
                os.sched_yield()
        program.communicate(packed[4:])
        self.assertEqual(program.returncode, 0)

    def test_a_small_file_takes_little_memory_whatever_it_unpacks_to(self):
        event = (b"}(\x8c\x06action\x8c\x05alloc\x8c\x04addrK\x01\x8c\x04sizeK\x08"
                 b"\x8c\x06streamK\x00uq\x00")
        most = 32 << 20
        for content in (b"\x80\x04" + b"]" * (most - 10) + b".",
                        b"\x80\x04}\x8c\x0ddevice_traces]](" + event + b"h\x00" * (most // 2 - 99) + b"eas.",
                        b"#\n" * (most // 2)):
            with self.subTest(content=content[:40]):
                result, kib = measured(gzip.compress(content))
                self.assertEqual(result.returncode, 2)
                self.assertIn(b"cistern: standard input: ", result.stderr)
                self.assertLess(kib, 768 << 10)  # a sanitizer's own included

    def test_a_folder_that_is_not_there_is_named_with_the_reason(self):
        for value, why in (("/nowhere", "No such file or directory"), ("/dev/null", "Not a directory")):
            with self.subTest(value=value):
                result = subprocess.run([PROGRAM, "run", "--", "true"], capture_output=True, text=True,
                                        env={**os.environ, "TMPDIR": value})
                self.assertEqual(result.returncode, 1)
                self.assertEqual(result.stderr,
                                 f"cistern: {value} (TMPDIR) cannot take temporary files: {why}\n")

    def test_where_the_current_folder_is_gone_a_relative_path_is_named(self):
        command = os.path.abspath(PROGRAM)
        for args, status, why in (
                (["replay", "-", "--plot", "a.svg"], 2, "--plot a.svg: cannot be written: No such file"),
                (["run", "--json", "a.json", "--", "true"], 2, "--json a.json: cannot be written: No such file"),
                (["generate", "serve:1"], 2, "serve-1.trace.gz: cannot be written: No such file")):
            with self.subTest(args=args), tempfile.TemporaryDirectory() as folder:
                gone = os.path.join(folder, "gone")
                os.mkdir(gone)
                result = subprocess.run(["sh", "-c", f'cd {gone}; rmdir {gone}; exec "$0" "$@"', command, *args],
                                        input=TRACE, capture_output=True)
                self.assertEqual(result.returncode, status)
                self.assertIn(why.encode(), result.stderr)
                self.assertNotIn(b"filesystem error", result.stderr)

    def test_a_file_that_is_written_keeps_what_the_old_one_was(self):
        with tempfile.TemporaryDirectory() as folder:
            at = functools.partial(os.path.join, folder)
            writers = (("serve-1.trace.gz", ["generate", "serve:1", "--to", folder]),
                       ("picture.svg", [*REPLAY, "--plot", at("picture.svg")]))
            for name, args in writers:
                with self.subTest(name=name):
                    with open(at("target"), "w") as file:
                        file.write("before")
                    os.chmod(at("target"), 0o640)
                    os.symlink("target", at(name))
                    result = subprocess.run([PROGRAM, *args], input=TRACE, capture_output=True)
                    self.assertEqual(result.returncode, 0, result.stderr)
                    self.assertTrue(os.path.islink(at(name)))
                    self.assertEqual(os.stat(at("target")).st_mode & 0o7777, 0o640)
                    self.assertGreater(os.path.getsize(at("target")), 100)
                    os.unlink(at("target"))  # a link to what is not there is followed, too
                    result = subprocess.run([PROGRAM, *args], input=TRACE, capture_output=True)
                    self.assertEqual(result.returncode, 0, result.stderr)
                    self.assertTrue(os.path.islink(at(name)))
                    self.assertGreater(os.path.getsize(at("target")), 100)
            longest = at("p" * 251 + ".svg")
            result = subprocess.run([PROGRAM, *REPLAY, "--plot", longest], input=TRACE, capture_output=True)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertTrue(os.path.exists(longest))
            os.symlink("/dev/stdout", at("out.svg"))
            result = subprocess.run([PROGRAM, *REPLAY, "--json", "--plot", at("out.svg")], input=TRACE,
                                    capture_output=True)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn(b"</svg>", result.stdout)
            self.assertIn(b'"trace":"stdin"', result.stdout)
            self.assertEqual(sorted(name for name in os.listdir(folder) if name.endswith(".tmp")), [])

    def test_colour_is_for_terminals_only(self):
        self.assertIn(b"\x1b[", on_a_terminal())
        self.assertNotIn(b"\x1b[", on_a_terminal(NO_COLOR="1"))
        self.assertNotIn(b"\x1b[", on_a_terminal(TERM="dumb"))
        result = subprocess.run([PROGRAM, *REPLAY], input=TRACE, capture_output=True)
        self.assertNotIn(b"\x1b[", result.stdout)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()

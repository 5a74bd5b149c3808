"""The manual's page, and the completion of bash, as the command writes them.

manual_test.py COMMAND    the built `cistern`. The formatter's test is left out where there is no groff."""

import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

COMMAND = pathlib.Path(sys.argv.pop(1)).resolve()


def printed(*args):
    return subprocess.run([COMMAND, *args], capture_output=True, text=True, check=True).stdout


def commands():
    """What --help lists."""
    listed = printed("--help").split("Subcommands:\n")[1]
    return re.findall(r"^  (\w+)  ", listed, re.M)


def options(command):
    return re.findall(r"^  (?:-\w,)?(--[a-z-]+)", printed(command, "--help"), re.M)


def completed(typed):
    """The words of a line in which each tab was typed at a bash, which then runs the line."""
    with tempfile.TemporaryDirectory() as folder:
        script = pathlib.Path(folder) / "cistern.bash"
        script.write_text(printed("completion", "bash"))
        (pathlib.Path(folder) / "a_trace.gz").touch()
        (pathlib.Path(folder) / "a_folder").mkdir()
        words = pathlib.Path(folder) / "words"
        start = pathlib.Path(folder) / "start"
        start.write_text(f". {script}\nPS1=ready:\nbind 'set bell-style none' 'set enable-bracketed-paste off'\n"
                         f"cistern() {{ printf '%s\\n' \"$@\" >{words}.new; mv {words}.new {words}; }}\n")
        ours, theirs = pty.openpty()
        shell = subprocess.Popen(["bash", "--noprofile", "--rcfile", start, "-i"], stdin=theirs, stdout=theirs,
                                 stderr=theirs, cwd=folder, start_new_session=True,
                                 env={"PATH": os.environ["PATH"], "TERM": "dumb", "INPUTRC": "/dev/null"})
        os.close(theirs)
        try:
            said = b""
            end = time.monotonic() + 60
            while b"ready:" not in said and time.monotonic() < end:
                said += os.read(ours, 4096)
            os.write(ours, typed.encode() + b"\n")
            while not words.exists() and time.monotonic() < end:
                if select.select([ours], [], [], 0.05)[0]:
                    said += os.read(ours, 4096)
            assert words.exists(), said.decode(errors="replace")
            return words.read_text().splitlines()
        finally:
            shell.kill()
            shell.wait()
            os.close(ours)


class Manual(unittest.TestCase):
    def test_the_page_has_every_command_and_option(self):
        page = printed("man").replace("\\-", "-")
        self.assertGreaterEqual(len(commands()), 7)
        for command in commands():
            self.assertIn(f"\n.SS {command}\n", page)
            section = page.split(f"\n.SS {command}\n")[1].split("\n.S")[0]
            for option in options(command):
                self.assertIn(f"\\fB{option}\\fR", section)
        for section in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "COMMANDS", "EXIT STATUS", "ENVIRONMENT"):
            self.assertIn(f"\n.SH {section}\n", page)
        self.assertIn("\\fBCISTERN_CONF\\fR", page)

    @unittest.skipUnless(shutil.which("groff"), "no groff is here")
    def test_the_formatter_has_no_complaint(self):
        page = printed("man")
        ended = subprocess.run(["groff", "-man", "-ww", "-Tutf8", "-Kutf8", "-z"], input=page, capture_output=True,
                               text=True)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        shown = subprocess.run(["groff", "-man", "-Tascii", "-Kutf8", "-P-c"], input=page, capture_output=True, text=True).stdout
        self.assertRegex(re.sub(".\b", "", shown), r"\n +--policy NAME\n +How requests are served")

    def test_the_commands_for_manuals_are_listed_too(self):
        self.assertLessEqual({"man", "completion"}, set(commands()))


class Completion(unittest.TestCase):
    def test_bash_knows_every_command_and_option(self):
        script = printed("completion", "bash")
        for command in commands():
            self.assertRegex(script, rf"\b{command}\b")
            for option in options(command):
                self.assertRegex(script, rf"{option}\b")

    def test_a_tab_completes_a_word(self):
        for typed, words in [
                ("cistern repl\t", ["replay"]),
                ("cistern repo\t", ["report"]),
                ("cistern report --policy torch-e\t", ["report", "--policy", "torch-expandable"]),
                ("cistern report --format speeds\t", ["report", "--format", "speedscope"]),
                ("cistern --ver\t", ["--version"]),
                ("cistern help gen\t", ["help", "generate"]),
                ("cistern replay --pol\t", ["replay", "--policy"]),
                ("cistern replay --policy torch-e\t", ["replay", "--policy", "torch-expandable"]),
                ("cistern replay --policy=dir\t", ["replay", "--policy=direct"]),
                ("cistern replay --policy cistern,dri\t", ["replay", "--policy", "cistern,driver-pool"]),
                ("cistern replay --device=s\t", ["replay", "--device=sim"]),
                ("cistern replay --generate ser\t1", ["replay", "--generate", "serve:1"]),
                ("cistern replay a_t\t", ["replay", "a_trace.gz"]),
                ("cistern replay a_trace.gz --no-\t", ["replay", "a_trace.gz", "--no-recycle"]),
                ("cistern generate --to a_\t", ["generate", "--to", "a_folder/"]),
                ("cistern run --tr\ta_t\t", ["run", "--trace", "a_trace.gz"]),
                ("cistern doctor --device cu\t--js\t", ["doctor", "--device", "cuda", "--json"]),
                ("cistern options max_spl\t", ["options", "max_split_size"]),
                ("cistern replay --capacity a_\t", ["replay", "--capacity", "a_"])]:
            with self.subTest(typed=typed):
                self.assertEqual(completed(typed), words)


if __name__ == "__main__":
    unittest.main()

"""Twice as many streams cost twice as much: no miss, poll, free or forgotten stream looks at all that
there are.

Counts with callgrind what a program with N and with 2 N streams executes, for several things that a
stream does, with pages and with segments.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

STREAMS = 2_000
MOST = 2.2
SKIPPED = 77
WAYS = ("hold", "large", "free", "share", "forget")
OPTIONS = ("background_thread:false", "backing:segments")


def instructions(valgrind, program, streams, way, options):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "profile"
        run = subprocess.run(
            [valgrind, "--tool=callgrind", f"--callgrind-out-file={out}",
             "--toggle-collect=cistern::golden::runStreams*", program, "streams", str(streams), way, options],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if run.returncode != 0 or not out.exists():
            sys.exit(f"callgrind failed ({run.returncode}):\n{run.stdout[-2000:]}")
        return int(re.search(r"^(?:summary|totals): (\d+)", out.read_text(), re.MULTILINE)[1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--build", required=True)
    parser.add_argument("--streams", type=int, default=STREAMS)
    arguments = parser.parse_args()
    valgrind = shutil.which("valgrind")
    if arguments.build != "plain":
        print("skipped: only a release build without sanitizers and audits is counted")
        sys.exit(SKIPPED)
    if valgrind is None:
        print("skipped: valgrind is not installed (./dev setup)")
        sys.exit(SKIPPED)

    wrong = False
    for options in OPTIONS:
        for way in WAYS:
            once, twice = (instructions(valgrind, arguments.program, n, way, options)
                           for n in (arguments.streams, 2 * arguments.streams))
            growth = twice / once
            wrong |= growth > MOST
            print(f"{'WRONG' if growth > MOST else 'right'}: {way:6} with {options}: "
                  f"{once / arguments.streams:9,.0f} instructions a stream, "
                  f"{growth:.2f} times as many for twice as many (at most {MOST})")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()

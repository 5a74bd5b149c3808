"""Twice as many streams cost twice as much: no miss, poll, free or forgotten stream looks at all that
there are.

Counts with callgrind what a program with N and with 2 N streams executes, for several things that a
stream does, with pages and with segments.
"""

import argparse
import sys

import callgrind

STREAMS = 2_000
MOST = 2.2
WAYS = ("hold", "large", "free", "share", "forget")
OPTIONS = ("background_thread:false", "backing:segments")


def instructions(valgrind, program, streams, way, options):
    profile, _ = callgrind.run(valgrind, [program, "streams", streams, way, options],
                               "cistern::golden::runStreams*")
    return profile.total


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--build", required=True)
    parser.add_argument("--streams", type=int, default=STREAMS)
    arguments = parser.parse_args()
    valgrind = callgrind.required(arguments.build)

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

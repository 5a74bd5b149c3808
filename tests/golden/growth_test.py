"""Twice as many streams cost twice as much: no miss, poll, free or forgotten stream looks at all that
there are, and no page of a miss at all its others.

Counts with callgrind what a program with N and with 2 N streams executes, for several things that a
stream does, with pages and with segments; what requests beyond the device's memory execute; and what
a request for N and for 2 N pages does.
"""

import argparse
import sys

import callgrind

STREAMS = 2_000
MOST = 2.2
WAYS = ("hold", "large", "free", "share", "forget")
# Requests that the device has no room for: how much more twice as many may cost, and each stream.
FULL = {"refuse": (2.2, 15_000), "overflow": (2.2, 40_000), "found": (1.2, 2_000)}
# A request for many pages: how much more one for twice as many may cost, and each page.
PAGES = (2.2, 5_000, "background_thread:false,page_size:2M")
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
    few = arguments.streams // 4
    rows = [(way, "stream", *most, OPTIONS[0]) for way, most in FULL.items()]
    for way, each, most, most_each, options in [*rows, ("pages", "page", *PAGES)]:
        once, twice = (instructions(valgrind, arguments.program, n, way, options)
                       for n in (few, 2 * few))
        bad = twice > most * once or once > most_each * few
        wrong |= bad
        print(f"{'WRONG' if bad else 'right'}: {way}: {once / few:9,.0f} instructions a {each} (at most "
              f"{most_each:,}), {twice / once:.2f} times as many for twice as many (at most {most})")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()

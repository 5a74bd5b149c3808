#!/usr/bin/env python3
"""Compares policies, and options of Cistern's, over the recorded programs and made up ones, on the
simulated device: what a rule of placement is searched with, and judged by.

    bench/sweep.py PROGRAM [SETTING...] [--generate SPEC] [--no-traces] [--lag MS] [--rounds N] [--json FILE]

PROGRAM is build/release/interop/command/cistern. A SETTING is a policy ("torch-expandable",
"driver-pool"), or options as CISTERN_CONF has them ("recycle:eager,page_size:16MiB"), or "default",
each perhaps named: "e16=recycle:eager,page_size:16MiB". SPEC is as `cistern replay --generate` has it
("all:0-24"). For each group of programs (each recorded one, each kind of the others) it prints

    E    peak of bytes asked for / peak of bytes reserved: the mean, and the worst of made up ones
    ms   the caller's time in calls to the device, of all rounds

and over all of them the means, the worst and the sum of ms, with several
rounds the calls of each, and the programs that lose most against the best of the other settings."""

import argparse
import concurrent.futures
import json
import os
import pathlib
import statistics
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[1]
TRACES = sorted((TOP / "bench/traces").glob("*.trace.gz"))
POLICIES = ("torch-rules", "torch-expandable", "driver-pool", "direct")
SETTINGS = (["default", "off=recycle:off"]
            + [f"e{n}=recycle:eager,page_size:{n}MiB" for n in (2, 4, 8, 16, 20, 32, 64)]
            + ["expandable=torch-expandable", "driver=driver-pool"])


class Setting:
    """A column: its title, and what is said to `cistern replay`."""

    def __init__(self, text):
        name, _, what = text.rpartition("=")
        self.name = name or what
        if what in POLICIES:
            self.arguments = ["--policy", what]
        elif what == "default":
            self.arguments = []
        else:
            self.arguments = ["--conf", what]


def replay(program, setting, what, lag, rounds):
    """The rows of --json, by program. One that is not served has a row without efficiency."""
    command = [program, "replay", "--device", "sim", "--json", "--gpu-lag-us", str(int(lag * 1000)),
               "--repeat", str(rounds), *setting.arguments, *what]
    environment = {k: v for k, v in os.environ.items() if k != "CISTERN_CONF"}
    result = subprocess.run(command, capture_output=True, text=True, env=environment)
    if result.returncode not in (0, 1) or not result.stdout:
        raise SystemExit(f"{' '.join(command)}\n{result.stderr}")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    return {row["trace"]: row for row in rows}


def measure(program, settings, whats, lag, rounds, jobs):
    """setting's name -> program -> row."""
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        futures = [(s.name, pool.submit(replay, program, s, what, lag, rounds))
                   for what in whats for s in settings]
        found = {s.name: {} for s in settings}
        for name, future in futures:
            found[name].update(future.result())
    return found


def group_of(program):
    return program.split(":")[0]


def efficiency(row):
    return row["efficiency"] or 0


def groups(found):
    names = {}
    for program in next(iter(found.values())):
        names.setdefault(group_of(program), []).append(program)
    return names


def table(head, rows):
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    def line(cells):
        return "| " + " | ".join(c.ljust(w) if i == 0 else c.rjust(w)
                                 for i, (c, w) in enumerate(zip(cells, widths))) + " |"
    return "\n".join([line(head), "|" + "|".join("-" * (w + 2) for w in widths) + "|",
                      *map(line, rows)])


def efficiencies(found):
    rows = []
    for group, programs in groups(found).items():
        cells = []
        for by_program in found.values():
            values = [efficiency(by_program[p]) for p in programs]
            worst = f" ({min(values):.3f})" if len(values) > 1 else ""
            cells.append(f"{statistics.mean(values):.3f}{worst}")
        rows.append([f"{group} x{len(programs)}" if len(programs) > 1 else group, *cells])
    everything = {n: [efficiency(r) for r in by.values()] for n, by in found.items()}
    rows.append(["mean of all", *(f"{statistics.mean(v):.4f}" for v in everything.values())])
    rows.append(["worst", *(f"{min(v):.3f}" for v in everything.values())])
    return table(["E", *found], rows)


def milliseconds(found):
    rows = []
    for group, programs in groups(found).items():
        cells = [statistics.mean(by[p]["modelled_device_ms"] for p in programs)
                 for by in found.values()]
        rows.append([f"{group} x{len(programs)}" if len(programs) > 1 else group,
                     *(f"{cell:.1f}" for cell in cells)])
    sums = [sum(row["modelled_device_ms"] for row in by.values()) for by in found.values()]
    rows.append(["sum of all", *(f"{total:,.0f}" for total in sums)])
    return table(["ms", *found], rows)


def rounds_of(found):
    rows = []
    for group, programs in groups(found).items():
        cells = []
        for by in found.values():
            by_round = zip(*(by[p]["calls_by_round"] for p in programs))
            cells.append(" ".join(f"{sum(calls):,}" for calls in by_round))
        rows.append([group, *cells])
    return table(["calls by round", *found], rows)


def losses(found, name, most):
    """Where the setting loses most E: (how much, program, its E, to which, whose E)."""
    own, lost = found[name], []
    for program, row in own.items():
        best = max((n for n in found if n != name),
                   key=lambda n: efficiency(found[n][program]), default=None)
        if best is None:
            continue
        theirs = efficiency(found[best][program])
        lost.append((theirs - efficiency(row), program, efficiency(row), best, theirs))
    return sorted(lost, reverse=True)[:most]


def counted(found, name):
    """Against each other setting: in how many programs it is worse, by more than 0.005, and how far
    at most."""
    rows = []
    for other, by in found.items():
        if other == name:
            continue
        less = [efficiency(by[p]) - efficiency(row) for p, row in found[name].items()]
        rows.append([other, str(sum(d > 0 for d in less)), str(sum(d > 0.005 for d in less)),
                     f"{max(less):.3f}", str(sum(d < -0.005 for d in less))])
    return table([f"{name} against", "worse", "by > .005", "at most", "better by > .005"], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("settings", nargs="*", default=SETTINGS, metavar="SETTING")
    parser.add_argument("--generate", action="append", default=[], metavar="SPEC")
    parser.add_argument("--no-traces", action="store_true")
    parser.add_argument("--lag", type=float, default=10, metavar="MS")
    parser.add_argument("--rounds", type=int, default=1, metavar="N")
    parser.add_argument("--json", metavar="FILE", help="all rows, by setting and program")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--losses", type=int, default=10, metavar="N")
    a = parser.parse_intermixed_args()
    settings = [Setting(text) for text in a.settings]
    whats = [[str(path)] for path in TRACES if not a.no_traces]
    whats += [["--generate", spec] for spec in a.generate]
    if not whats:
        parser.error("--no-traces needs --generate")
    found = measure(a.program, settings, whats, a.lag, a.rounds, a.jobs)
    if a.json:
        pathlib.Path(a.json).write_text(json.dumps(found))
    print(efficiencies(found), milliseconds(found), sep="\n\n")
    if a.rounds > 1:
        print("", rounds_of(found), sep="\n")
    first = settings[0].name
    print("", counted(found, first), sep="\n")
    print(f"\nWhere {first} loses most:")
    for less, program, own, best, theirs in losses(found, first, a.losses):
        print(f"  {program:18} {own:.3f}, {best} {theirs:.3f}: {less:+.3f}")


if __name__ == "__main__":
    sys.exit(main())

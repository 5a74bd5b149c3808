"""Each of the engine's paths takes as many locks and calls to the device as paths.json says, and no more
instructions than its table of this compiler, within a tolerance (tables.py). --write measures all of it
anew (./dev golden).

Goes each path N and 2 N times under callgrind, and takes the difference. Counted is the verb that the
path is named after, with all that it calls. Instructions are the engine's as programs have it, without
what a call to the device takes on the other side, and without the C library's work for host memory
(paths/fixed_host_memory.cpp): so they are the same every time. Locks are counted in a build where taking one is a
function: its locked instructions are the locks that were taken, as nothing waits for one here.
"""

import argparse
import concurrent.futures
import pathlib
import re
import subprocess

import callgrind
import tables

TIMES = 64
WORKERS = 2
COUNTED = "cistern::golden::counted"
SIMULATED = re.compile(r"(auto )?cistern::sim::")
DEVICE = re.compile(r"(auto )?cistern::(sim::|Device::)")
LOCKS = ("cistern::Mutex::lock()", "cistern::Mutex::try_lock()",
         "cistern::MutexLock::MutexLock(cistern::Mutex&)", "pthread_mutex_lock",
         "pthread_mutex_trylock")


# ---- Measuring -----------------------------------------------------------------------------------


def plain(number):
    """Of what is the same every time, a whole number."""
    return int(number) if number == int(number) else round(number, 3)


def calls_of(printed):
    return {kind: int(count) for kind, count in map(str.split, printed.splitlines())}


def more(valgrind, program, path):
    """What one time more of the path costs: (calls of a function by another, calls to the device)"""
    (once, first), (twice, second) = (
        callgrind.run(valgrind, [program, path, times], f"{COUNTED}*")
        for times in (TIMES, 2 * TIMES))
    first, second = calls_of(first), calls_of(second)
    device = {kind: plain((count - first.get(kind, 0)) / TIMES) for kind, count in second.items()}
    return (callgrind.difference(once.calls, twice.calls, TIMES),
            {kind: count for kind, count in device.items() if count})


def instructions(costs):
    verb = sum(cost[0] for (by, _), cost in costs.items() if by.startswith(COUNTED))
    device = sum(cost[0] for (by, called), cost in costs.items()
                 if DEVICE.match(called) and not DEVICE.match(by))
    return verb - device


def takers(costs):
    """Who takes locks, and how many: [(function, locks)]. The simulated device's do not count."""
    by = {}
    for (function, called), cost in costs.items():
        taken = called.partition("@")[0] in LOCKS and function not in LOCKS
        if taken and cost[1] and not SIMULATED.match(function):
            by[function] = by.get(function, 0) + cost[1]
    return sorted(((name, plain(count)) for name, count in by.items()), key=lambda taker: -taker[1])


def measured(valgrind, program, called, path):
    costs, device = more(valgrind, program, path)
    taking = takers(more(valgrind, called, path)[0])
    return {"instructions": round(instructions(costs)),
            "locks": plain(sum(count for _, count in taking)), "calls": device}, taking


# ---- Comparing -----------------------------------------------------------------------------------


def changes(path, kept, now):
    """What is wrong with a path's locks and calls, as lines."""
    def line(what, before, after):
        rise = "more" if after > before else "fewer"
        return f"{path}: {rise} {what}: {after:,}, and paths.json says {before:,}"

    wrong = []
    if now["locks"] != kept["locks"]:
        wrong.append(line("locks", kept["locks"], now["locks"]))
    for kind in sorted({*now["calls"], *kept["calls"]}):
        before, after = kept["calls"].get(kind, 0), now["calls"].get(kind, 0)
        if before != after:
            wrong.append(line(f"calls of {kind}", before, after))
    return wrong


def shown(rows):
    """The paths that were measured, as lines of a table."""
    for path, row in rows:
        calls = ", ".join(f"{kind} {count}" for kind, count in row["calls"].items()) or "-"
        yield f"{path:44} {row['instructions']:>12,} {row['locks']:>7}  {calls}"


def write(table, rows):
    table.file["paths"] = {path: {"locks": row["locks"], "calls": row["calls"]} for path, row in rows}
    table.keep({path: row["instructions"] for path, row in rows})
    table.write()


# --------------------------------------------------------------------------------------------------


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("called", help="the same program with nothing inlined")
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--build", required=True)
    parser.add_argument("--write", action="store_true", help="keep what is measured")
    arguments = parser.parse_args()
    valgrind = callgrind.required(arguments.build)
    table = tables.Instructions(pathlib.Path(__file__).parent / "paths.json", arguments.compiler)
    kept = table.file["paths"]
    paths = subprocess.run([arguments.program], stdout=subprocess.PIPE, text=True,
                           check=True).stdout.splitlines()
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        results = list(pool.map(
            lambda path: measured(valgrind, arguments.program, arguments.called, path), paths))
    rows = [(path, row) for path, (row, _) in zip(paths, results)]
    print(f"{'':44} {'instructions':>12} {'locks':>7}  calls to the device", *shown(rows), sep="\n")
    if arguments.write:
        write(table, rows)
        return
    wrong = [f"{path}: paths.json has it, the program does not" for path in kept if path not in paths]
    taken = {}
    for path, (row, taking) in zip(paths, results):
        if path not in kept:
            wrong.append(f"{path}: paths.json does not have it")
            continue
        wrong += table.changes(path, row["instructions"]) + changes(path, kept[path], row)
        if row["locks"] != kept[path]["locks"]:
            taken[path] = taking
    for path, taking in taken.items():
        print(f"{path} takes locks in", *(f"{count:>8} {name[:90]}" for name, count in taking), sep="\n")
    table.end(wrong)


if __name__ == "__main__":
    main()

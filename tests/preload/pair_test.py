"""A cudaMalloc and its cudaFree, or HIP's, under Cistern take no more instructions than pair.json says, where the
thread has the memory in its cache; and no more locked ones. Counted is what Cistern does of it, without
the program and the (fake) driver, which is asked for the current context. --write measures it anew (./dev golden).

pair_test.py LIBRARY FOLDER_OF_THE_DRIVER FOLDER_OF_PROGRAMS FOLDER_OF_CALLGRIND COMPILER BUILD PROGRAM [--write]"""

import os
import pathlib
import sys

PAIRS = 2000
SIZES = (4096, 1048576)


def measure(valgrind, count, size):
    os.environ |= {"PAIRS": str(count), "BYTES": str(size)}
    profile, _ = callgrind.run(valgrind, [f"{PROGRAMS}/{PROGRAM}", "pairs"], "*runPairs*")
    return profile.own


def is_cisterns(function):
    return function in ("cuMemAlloc_v2", "cuMemFree_v2", "hipMalloc", "hipFree") or "cistern::" in function


def main():
    valgrind = callgrind.required(BUILD)
    table = tables.Instructions(pathlib.Path(__file__).parent / "pair.json", COMPILER)
    if not WRITE:
        table.require()
    os.environ |= {"LD_LIBRARY_PATH": f"{DRIVER}:{PROGRAMS}", "LD_PRELOAD": LIBRARY}
    wrong, counts, most_locked = [], {}, table.file["locked"]
    for size in SIZES:
        costs = callgrind.difference(measure(valgrind, PAIRS, size), measure(valgrind, 2 * PAIRS, size), PAIRS)
        ours = {name: cost for name, cost in costs.items() if is_cisterns(name) and cost != [0, 0]}
        instructions, locked = (round(sum(cost[i] for cost in ours.values()), 2) for i in range(2))
        what = f"{PROGRAM}, {size} bytes"
        print(f"{instructions:.2f} instructions, {locked:.2f} locked (at most {most_locked}): {what}")
        for name, cost in sorted(ours.items()):
            print(f"    {cost[0]:8.2f} {cost[1]:5.2f}  {name}")
        counts[what] = instructions
        wrong += table.changes(what, instructions)
        if locked > most_locked:
            wrong.append(f"{what}: a pair takes {locked:.2f} locked instructions")
    if WRITE:
        table.keep(counts, replace=False)
        table.write()
        return
    table.end(wrong)


if __name__ == "__main__":
    LIBRARY, DRIVER, PROGRAMS, CALLGRIND, COMPILER, BUILD, PROGRAM, *WRITE = sys.argv[1:]
    sys.path.insert(0, CALLGRIND)
    import callgrind
    import tables
    main()

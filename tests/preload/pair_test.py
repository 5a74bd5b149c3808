"""A cudaMalloc and its cudaFree, or HIP's, under Cistern take no more instructions than pair.json says, where the
thread has the memory in its cache; and no more locked ones. Counted is what Cistern does of it, without
the program and the (fake) driver, which is asked for the current context.

pair_test.py LIBRARY FOLDER_OF_THE_DRIVER FOLDER_OF_PROGRAMS FOLDER_OF_CALLGRIND FAMILY BUILD PROGRAM"""

import json
import os
import pathlib
import sys

PAIRS = 2000


def measure(valgrind, count, size):
    os.environ |= {"PAIRS": str(count), "BYTES": str(size)}
    profile, _ = callgrind.run(valgrind, [f"{PROGRAMS}/{PROGRAM}", "pairs"], "*runPairs*")
    return profile.own


def is_cisterns(function):
    return function in ("cuMemAlloc_v2", "cuMemFree_v2", "hipMalloc", "hipFree") or "cistern::" in function


def main():
    golden = json.loads((pathlib.Path(__file__).parent / "pair.json").read_text())
    valgrind = callgrind.required(BUILD)
    if FAMILY not in golden["instructions"][PROGRAM]:
        callgrind.skip(f"pair.json has no figures for {FAMILY}")
    os.environ |= {"LD_LIBRARY_PATH": f"{DRIVER}:{PROGRAMS}", "LD_PRELOAD": LIBRARY}
    wrong = []
    for size, figure in golden["instructions"][PROGRAM][FAMILY].items():
        costs = callgrind.difference(measure(valgrind, PAIRS, size), measure(valgrind, 2 * PAIRS, size), PAIRS)
        ours = {name: cost for name, cost in costs.items() if is_cisterns(name) and cost != [0, 0]}
        instructions, locked = (sum(cost[i] for cost in ours.values()) for i in range(2))
        most = figure * (1 + golden["tolerance"])
        print(f"{instructions:.2f} instructions, {locked:.2f} locked: {size} bytes; at most {most:.2f}, {golden['locked']}")
        for name, cost in sorted(ours.items()):
            print(f"    {cost[0]:8.2f} {cost[1]:5.2f}  {name}")
        if not figure * (1 - golden["tolerance"]) <= instructions <= most:
            wrong.append(f"a pair of {size} bytes takes {instructions:.2f} instructions; pair.json says {figure}")
        if locked > golden["locked"]:
            wrong.append(f"a pair of {size} bytes takes {locked:.2f} locked instructions")
    for line in wrong:
        print(f"WRONG: {line}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    LIBRARY, DRIVER, PROGRAMS, CALLGRIND, FAMILY, BUILD, PROGRAM = sys.argv[1:]
    sys.path.insert(0, CALLGRIND)
    import callgrind
    main()

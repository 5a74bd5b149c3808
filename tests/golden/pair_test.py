"""A cached pair takes no more instructions than pair.json says, in the two verbs and nowhere else, and
none of them is a locked one: no lock is taken, nothing is allocated on the host, no call is made.
Through a stream's allocator it takes no more either, and through the C API those that pair.json says:
for the handle and the status, and without a locked one. So it is through the doors of the shared
library, where the loader finds a thread's own variables. --write measures it anew (./dev golden).

Runs the program twice under callgrind, with N and with 2 N pairs: what is the same in both is not
the pairs'. Counted are the two verbs and all that they call, without the loop around them.
"""

import argparse
import pathlib

import callgrind
import tables

PAIRS = 20_000
LOOP = "cistern::golden::runPairs"
VERBS = ("cistern::CachingAllocator::allocate(unsigned long, cistern::Stream)",
         "cistern::CachingAllocator::free(void*)")
C_VERBS = ("cistern_allocate", "cistern_free")
FUNCTIONS = ("cistern::allocate(unsigned long, cistern::Stream)", "cistern::free(void*)")
LOADER = ("_dl_tlsdesc_return",)


def measure(valgrind, program, way):
    """What a pair costs, of each function."""
    once, twice = (callgrind.run(valgrind, [program, pairs, *way], f"{LOOP}*")[0].own
                   for pairs in (PAIRS, 2 * PAIRS))
    return callgrind.difference(once, twice, PAIRS)


def check(costs, called):
    """What is wrong with the costs of one way to allocate, whatever their number, as lines."""
    strange = [name for name, cost in costs.items()
               if cost != [0, 0] and name not in called and not name.startswith(LOOP)]
    wrong = []
    if any(name not in costs for name in called):
        wrong.append("the verbs were not found in the profile")
    if strange:
        wrong.append(f"a cached pair passes through {', '.join(strange)}")
    if any(bus for _, bus in costs.values()):
        wrong.append("a cached pair executes locked instructions")
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("shared")
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--build", required=True)
    parser.add_argument("--write", action="store_true", help="keep what is measured")
    arguments = parser.parse_args()
    valgrind = callgrind.required(arguments.build)
    table = tables.Instructions(pathlib.Path(__file__).parent / "pair.json", arguments.compiler)
    if not arguments.write:
        table.require()

    wrong, counts = [], {}
    plain, shared = arguments.program, arguments.shared
    for what, program, way, called in (
            ("verbs", plain, [], VERBS), ("verbs", plain, ["front"], VERBS),
            ("C API", plain, ["c"], C_VERBS),
            ("shared: verbs", shared, ["verbs"], VERBS + LOADER),
            ("shared: functions", shared, ["functions"], FUNCTIONS + VERBS + LOADER),
            ("shared: C API", shared, ["c"], C_VERBS + LOADER)):
        costs = measure(valgrind, program, way)
        for name, (instructions, bus) in sorted(costs.items()):
            if instructions or bus:
                print(f"{instructions:8.2f} instructions, {bus:.2f} locked  {name}")
        taken = round(sum(costs.get(name, [0, 0])[0] for name in called), 2)
        print(f"{taken:8.2f} a pair: {what}")
        counts.setdefault(what, taken)
        wrong += check(costs, called) + table.changes(what, taken)
    if arguments.write:
        table.keep(counts)
        table.write()
        return
    table.end(wrong)


if __name__ == "__main__":
    main()

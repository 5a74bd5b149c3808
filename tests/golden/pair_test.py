"""A cached pair takes as many instructions as pair.json says, in the two verbs and nowhere else, and
none of them is a locked one: no lock is taken, nothing is allocated on the host, no call is made.
Through a stream's allocator it takes as many, and through the C API those that pair.json says: for the
handle and the status, and without a locked one either. So it is through the doors of the shared library,
where the loader finds a thread's own variables.

Runs the program twice under callgrind, with N and with 2 N pairs: what is the same in both is not
the pairs'. Counted are the two verbs and all that they call, without the loop around them.
"""

import argparse
import json
import pathlib
import sys

import callgrind

PAIRS = 20_000
LOOP = "cistern::golden::runPairs"
VERBS = ("cistern::CachingAllocator::allocate(unsigned long, cistern::Stream)",
         "cistern::CachingAllocator::free(void*)")
C_VERBS = ("cistern_allocate", "cistern_free")
FUNCTIONS = ("cistern::allocate(unsigned long, cistern::Stream)", "cistern::free(void*)")
LOADER = ("_dl_tlsdesc_return",)


def measure(valgrind, program, pairs, way):
    profile, _ = callgrind.run(valgrind, [program, pairs, *way], f"{LOOP}*")
    return profile.own


def check(costs, called, expected, most, tolerance):
    """What is wrong with the costs of one way to allocate, as lines."""
    for name, (instructions, bus) in sorted(costs.items()):
        print(f"{instructions:8.2f} instructions, {bus:.2f} locked  {name}")
    verbs = sum(costs.get(name, [0, 0])[0] for name in called)
    strange = [name for name, cost in costs.items()
               if cost != [0, 0] and name not in called and not name.startswith(LOOP)]
    print(f"{verbs:8.2f} a pair; the figure is {expected}, at most {most:.2f} may be")
    wrong = []
    if any(name not in costs for name in called):
        wrong.append("the verbs were not found in the profile")
    if strange:
        wrong.append(f"a cached pair passes through {', '.join(strange)}")
    if any(bus for _, bus in costs.values()):
        wrong.append("a cached pair executes locked instructions")
    if verbs > most:
        wrong.append(f"a pair takes {verbs:.2f} instructions")
    if verbs < expected * (1 - tolerance):
        wrong.append(f"a pair takes {verbs:.2f} instructions only: lower the figure in pair.json")
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("shared")
    parser.add_argument("--family", required=True)
    parser.add_argument("--build", required=True)
    arguments = parser.parse_args()
    golden = json.loads((pathlib.Path(__file__).parent / "pair.json").read_text())
    valgrind = callgrind.required(arguments.build)
    if arguments.family not in golden["instructions"]:
        callgrind.skip(f"pair.json has no figure for {arguments.family}")

    tolerance = golden["tolerance"]
    wrong = []
    program, shared, of_shared = arguments.program, arguments.shared, golden["shared"]
    for program, way, called, figures in (
            (program, [], VERBS, golden), (program, ["front"], VERBS, golden),
            (program, ["c"], C_VERBS, golden["c"]),
            (shared, ["verbs"], VERBS + LOADER, of_shared["verbs"]),
            (shared, ["functions"], FUNCTIONS + VERBS + LOADER, of_shared["functions"]),
            (shared, ["c"], C_VERBS + LOADER, of_shared["c"])):
        expected = figures["instructions"][arguments.family]
        most = min(figures["most"], expected * (1 + tolerance))
        costs = callgrind.difference(measure(valgrind, program, PAIRS, way),
                                     measure(valgrind, program, 2 * PAIRS, way), PAIRS)
        wrong += check(costs, called, expected, most, tolerance)
    for line in wrong:
        print(f"WRONG: {line}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()

"""A cached pair takes as many instructions as pair.json says, in the two verbs and nowhere else, and
none of them is a locked one: no lock is taken, nothing is allocated on the host, no call is made.
Through a stream's allocator it takes as many.

Runs the program twice under callgrind, with N and with 2 N pairs: what is the same in both is not
the pairs'. Counted are the two verbs and all that they call, without the loop around them.
"""

import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

PAIRS = 20_000
SKIPPED = 77
LOOP = "cistern::golden::runPairs"
VERBS = ("cistern::CachingAllocator::allocate(unsigned long, cistern::Stream)",
         "cistern::CachingAllocator::free(void*)")


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def self_costs(profile):
    """Function -> [instructions, bus events] of its own, out of a callgrind file."""
    costs, names, function, of_call = {}, {}, None, False
    for line in profile.splitlines():
        named = re.match(r"fn=\((\d+)\)(?: (.*))?$", line)
        if named:
            if named[2]:
                names[named[1]] = named[2]
            function = names[named[1]]
        elif line.startswith("cfn="):
            called = re.match(r"cfn=\((\d+)\)(?: (.*))?$", line)
            if called[2]:
                names[called[1]] = called[2]
        elif line.startswith("calls="):
            of_call = True  # the next line is what the called function cost
        elif re.match(r"[+\-*\d]", line) and function:
            if not of_call:
                own = costs.setdefault(function, [0, 0])
                for i, cost in enumerate(line.split()[1:3]):
                    own[i] += int(cost)
            of_call = False
    return costs


def measure(valgrind, program, pairs, way):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "profile"
        run = subprocess.run(
            [valgrind, "--tool=callgrind", "--collect-bus=yes", f"--callgrind-out-file={out}",
             f"--toggle-collect={LOOP}*", program, str(pairs), *way],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if run.returncode != 0 or not out.exists():
            sys.exit(f"callgrind failed ({run.returncode}):\n{run.stdout[-2000:]}")
        return self_costs(out.read_text())


def per_pair(once, twice):
    """Function -> what it costs a pair: [instructions, bus events]."""
    none = [0, 0]
    return {name: [(cost[i] - once.get(name, none)[i]) / PAIRS for i in range(2)]
            for name, cost in twice.items()}


def check(costs, expected, most, tolerance):
    """What is wrong with the costs of one way to allocate, as lines."""
    for name, (instructions, bus) in sorted(costs.items()):
        print(f"{instructions:8.2f} instructions, {bus:.2f} locked  {name}")
    verbs = sum(costs.get(name, [0, 0])[0] for name in VERBS)
    strange = [name for name, cost in costs.items()
               if cost != [0, 0] and name not in VERBS and not name.startswith(LOOP)]
    print(f"{verbs:8.2f} a pair; the figure is {expected}, at most {most:.2f} may be")
    wrong = []
    if any(name not in costs for name in VERBS):
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
    parser.add_argument("--family", required=True)
    parser.add_argument("--build", required=True)
    arguments = parser.parse_args()
    golden = json.loads((pathlib.Path(__file__).parent / "pair.json").read_text())
    valgrind = shutil.which("valgrind")
    if arguments.build != "plain":
        skip("only a release build without sanitizers and audits is counted")
    if arguments.family not in golden["instructions"]:
        skip(f"pair.json has no figure for {arguments.family}")
    if valgrind is None:
        skip("valgrind is not installed (./dev setup)")

    expected = golden["instructions"][arguments.family]
    most = min(golden["most"], expected * (1 + golden["tolerance"]))
    wrong = []
    for way in ([], ["front"]):
        costs = per_pair(measure(valgrind, arguments.program, PAIRS, way),
                         measure(valgrind, arguments.program, 2 * PAIRS, way))
        wrong += check(costs, expected, most, golden["tolerance"])
    for line in wrong:
        print(f"WRONG: {line}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()

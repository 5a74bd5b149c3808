#!/usr/bin/env python3
"""Takes the figures anew that README.md and docs/ state and that follow from the simulated device, and
writes them where they stand: between "<!-- figures: NAME -->" and "<!-- end -->". Those that stand in
sentences are printed, with the page that has them. It draws docs/memory-over-time.svg as well. ./dev docs
runs it; by hand:

    bench/figures.py build/release/interop/command/cistern [--print]
    bench/figures.py --paths

--print writes nothing, and prints the tables as well. --paths writes the table of tests/golden alone.
Nothing here depends on the machine but ns/event in the sample of docs/replay.md. Figures taken on a GPU
are not made here: docs/benchmarks.md says of which run each is."""

import gzip
import json
import pathlib
import re
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[1]
TRACES = {path.name.split(".")[0]: path for path in sorted((TOP / "bench/traces").glob("*.trace.gz"))}
# Recorded when the rules stood, and never tuned on.
LATER = sorted((TOP / "bench/traces/later").glob("*.trace.gz"))
LAG = ["--gpu-lag-us", "10000"]
PLAIN = ["--page-size", "20MiB", "--no-recycle"]
TORCH = ["--policy", "torch-rules"]
EAGER = ["--conf", "recycle:eager"]
PEERS = [TORCH, ["--policy", "torch-expandable"], ["--policy", "driver-pool"]]
# What the policy torch-rules is made of, as options, but for the order of segments.
TORCH_OPTIONS = ("backing:segments,background_thread:false,cross_stream_reuse:false,"
                 "prefer_old_segments:")
MADE_UP = ("500-524", "1000-1024", "2000-2024", "3000-3024")  # seeds
KEPT = 600_000_000  # bytes on each stream, of a program that keeps something


class Figures:
    def __init__(self, program):
        self.program = program
        self.known = {}

    def replay(self, paths, *how):
        """The rows of --json."""
        command = [self.program, "replay", *map(str, paths), "--device", "sim", "--json", *how]
        result = subprocess.run(command, capture_output=True, text=True, check=True)
        return [json.loads(line) for line in result.stdout.splitlines()]

    def all(self, *how):
        """A row for each recorded program."""
        return self.all_of(TRACES.values(), *how)

    def all_of(self, paths, *how):
        key = (*paths, *how)
        if key not in self.known:
            self.known[key] = self.replay(paths, *how)
        return self.known[key]

    def one(self, name, *how):
        return self.replay([TRACES[name]], *how)[0]


def gib(size):
    return f"{size / 2**30:.2f} GiB"


def percent(fraction):
    return f"{100 * fraction:.1f}"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def calls(counts):
    return f"{counts:,}"


# ---- The tables ----------------------------------------------------------------------------------


def reserves(figures, paths=TRACES.values()):
    def cell(row, least):
        mark = "**" if row["peak_reserved_bytes"] == least else ""
        size = f"{row['peak_reserved_bytes'] / 2**30:.2f}"
        return f"{mark}{size}{mark} ({percent(row['efficiency'])} %)"

    rows = []
    for program in zip(*(figures.all_of(paths, *policy, *LAG) for policy in ([], *PEERS))):
        asked = f"{program[0]['peak_requested_bytes'] / 2**30:.2f}"
        least = min(row["peak_reserved_bytes"] for row in program)
        rows.append([program[0]["trace"], asked, *(cell(row, least) for row in program)])
    return table(["GiB reserved (in use)", "asked for", "Cistern", "PyTorch",
                  "PyTorch, expandable", "driver's pool"], rows)


def later(figures):
    return reserves(figures, LATER)


def sample(figures):
    command = [figures.program, "replay", TRACES["unet_buckets"], "--device", "sim", "--fit"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rows = text.split("\n\n")[0].strip("\n")
    return f"```\n{rows}\n```"


def behind_a_block(text, times):
    """The trace `times` over, behind a block a stream that lives to the end."""
    events = [line.split() for line in text.splitlines() if line[:2] in ("a ", "f ")]
    streams = sorted({event[2] for event in events if event[0] == "a"}, key=int)
    lines = [f"a {KEPT} {stream} 0" for stream in streams]
    total = sum(event[0] == "a" for event in events)
    freed = {int(event[1]) for event in events if event[0] == "f"}
    for time in range(times):
        first = len(streams) + time * total
        for event in events:
            if event[0] == "a":
                lines.append(" ".join(event))
            else:
                lines.append(f"f {int(event[1]) + first} {event[2]}")
        lines += [f"f {number + first} 0" for number in range(total) if number not in freed]
    return "\n".join(lines) + "\n"


def kept_rounds(figures):
    rows = []
    for name, path in TRACES.items():
        text = gzip.decompress(path.read_bytes()).decode()
        made = []
        with tempfile.TemporaryDirectory() as folder:
            for times in range(2, 6):
                file = pathlib.Path(folder) / f"{name}.trace"
                file.write_text(behind_a_block(text, times))
                made.append(sum(figures.replay([file], *LAG)[0]["calls_by_round"]))
        later = [after - before for before, after in zip(made, made[1:])]
        rows.append([name, calls(made[0]), *map(calls, later)])
    return table(["calls to the device", "rounds 1 and 2", "3", "4", "5"], rows)


HOW = {"default": [], "eager": EAGER, "plain": PLAIN, "torch-rules": TORCH}


def each(figures, value):
    columns = [figures.all(*how, *LAG) for how in HOW.values()]
    return [[rows[0]["trace"], *map(value, rows)] for rows in zip(*columns)]


def device_time(figures):
    rows = each(figures, lambda row: f"{row['modelled_device_ms']:.1f}")
    takes = [f"{row['program_ms'] / 1e3:.2g} s" for row in figures.all(*LAG)]
    return table(["device ms", *HOW, "the program takes"],
                 [[*row, time] for row, time in zip(rows, takes)])


def made_up(figures):
    """Means by kind, the peers as in the table of README.md."""
    programs = [word for seeds in MADE_UP for word in ("--generate", "all:" + seeds)]
    columns = [figures.all_of((), *programs, *how, *LAG) for how in ([], *PEERS)]
    kinds = {}
    for row in zip(*columns):
        kinds.setdefault(row[0]["trace"].split(":")[0], []).append(row)
    everything = [row for rows in kinds.values() for row in rows]

    def mean(rows, column):
        return percent(sum(row[column]["efficiency"] for row in rows) / len(rows))

    def better(column):
        """How many programs have less reserved than under Cistern, and by how much at most."""
        saved = [1 - row[column]["peak_reserved_bytes"] / row[0]["peak_reserved_bytes"]
                 for row in everything]
        if max(saved) <= 0:
            return "none"
        return f"{sum(part > 0 for part in saved)}, by {percent(max(saved))} % at most"

    body = [[kind, *(mean(rows, at) for at in range(len(columns)))] for kind, rows in kinds.items()]
    body.append([f"all {len(everything)}", *(mean(everything, at) for at in range(len(columns)))])
    body.append(["reserves less than Cistern on", "", *map(better, range(1, len(columns)))])
    return table(["mean efficiency, %", "Cistern", "PyTorch", "PyTorch, expandable",
                  "driver's pool"], body)


def paths(_):
    """Measured by tests/golden, which keeps them: ./dev golden."""
    kept = json.loads((TOP / "tests/golden/paths.json").read_text())
    instructions = kept["instructions"]["gcc-12.2-x86_64"]
    rows = [[path, f"{instructions[path]:,}", str(row["locks"]),
             ", ".join(f"{kind} {count}" for kind, count in row["calls"].items())]
            for path, row in kept["paths"].items()]
    return table(["path", "instructions", "locks", "calls to the device"], rows)


TABLES = {"reserves": reserves, "later": later, "sample": sample, "kept-rounds": kept_rounds, "device-ms": device_time,
          "made-up": made_up, "paths": paths}


# ---- The picture ---------------------------------------------------------------------------------


PICTURE = TOP / "docs/memory-over-time.svg"


def draw(program, path):
    """Memory of a recorded program over time, under Cistern and what it replaces."""
    policies = ["--policy", "cistern,torch-rules,torch-expandable"]
    subprocess.run([program, "replay", TRACES["maskrcnn"], "--device", "sim", *policies, *LAG,
                    "--plot", path], capture_output=True, check=True)


# ---- Those in sentences --------------------------------------------------------------------------


def sentences(figures):
    """(page, what it says)"""
    keeps_up, lags = figures.all(), figures.all(*LAG)
    for one, other in zip(keeps_up, lags):
        if percent(one["efficiency"]) != percent(other["efficiency"]):
            yield "docs/benchmarks.md", (f"with a GPU that keeps up {one['trace']} has "
                                         f"{percent(one['efficiency'])} % in use")
    for title, policy in [("Cistern", []), ("expandable segments", PEERS[1]), ("the driver's pool", PEERS[2])]:
        shares = [row["modelled_device_ms"] / row["program_ms"] for row in figures.all(*policy, *LAG)]
        yield "README.md, docs/benchmarks.md", (f"under {title} a program waits {percent(min(shares))} to "
                                                f"{percent(max(shares))} % of its time for the driver")
    for name in ("eager", "plain"):
        used = [row["efficiency"] for row in figures.all(*HOW[name], *LAG)]
        yield "docs/pages.md", f"{name} has {percent(min(used))} to {percent(max(used))} % in use"
    for title, how in [("default", []), ("plain", PLAIN)]:
        least = min(row["fit"] for row in figures.all(*how, "--gpu-lag-us", "100000", "--fit"))
        yield "docs/pages.md", (f"within a cap each is served in at most {percent(1 / least - 1)} % "
                               f"more than it asks for: {title}")
    for own, peer in zip(figures.all_of(LATER, *LAG), figures.all_of(LATER, *PEERS[1], *LAG)):
        yield "docs/benchmarks.md", (f"{own['trace']}: {percent(own['efficiency'])} % in use, "
                                     f"{percent(peer['efficiency'])} % under expandable segments")
    for order, which in [("true", "oldest"), ("false", "youngest")]:
        row = figures.one("llama_generate", "--conf", TORCH_OPTIONS + order)
        yield "docs/decisions.md", (f"llama_generate, ties towards the {which} segment: "
                                    f"{gib(row['peak_reserved_bytes'])}, {row['efficiency']:.3f}")
    for threads in ["1", "8"]:
        by_round = figures.one("llama_generate", *LAG, "--repeat", "3", "--threads", threads)
        third, first = by_round["calls_by_round"][2], by_round["calls_by_round"][0]
        yield "docs/decisions.md", (f"llama_generate on {threads} threads, third round: "
                                    f"{percent(third / first)} % of the first's calls")
    row = figures.one("llama_generate", *LAG, "--threads", "8")
    yield "docs/decisions.md", f"llama_generate on 8 threads: {percent(row['efficiency'])} % in use"


# --------------------------------------------------------------------------------------------------


def pages():
    return [TOP / "README.md", *sorted((TOP / "docs").glob("*.md"))]


def rewritten(text, made, names=r"\S+"):
    """`text` with each marked table of such a name replaced; `made` gives one by its name."""
    return re.sub(rf"(<!-- figures: ({names}) -->\n).*?(<!-- end -->)",
                  lambda match: f"{match[1]}\n{made(match[2])}\n\n{match[3]}", text, flags=re.S)


def main(program, only_print):
    figures = Figures(program)
    for page in pages():
        text = page.read_text()
        if only_print:
            for name in re.findall(r"<!-- figures: (\S+) -->", text):
                print(f"{page.relative_to(TOP)}, {name}:\n\n{TABLES[name](figures)}\n")
        else:
            page.write_text(rewritten(text, lambda name: TABLES[name](figures)))
    if not only_print:
        draw(program, PICTURE)
    print("In sentences:")
    for page, what in sentences(figures):
        print(f"  {page}: {what}")


def write_paths():
    for page in pages():
        page.write_text(rewritten(page.read_text(), lambda name: paths(None), "paths"))


if __name__ == "__main__":
    write_paths() if sys.argv[1:] == ["--paths"] else main(sys.argv[1], "--print" in sys.argv[2:])

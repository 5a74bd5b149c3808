"""What is counted is what was allocated; a snapshot shows what is there; the structs are the header's."""

import ctypes
import dataclasses
import json
import re

import cistern
import pytest
from cistern import _native
from conftest import MIB, TOP

HEADER = "".join(path.read_text() for path in sorted((TOP / "include/cistern").glob("*.h")))


def test_statistics_are_what_was_allocated(allocator):
    small, large = allocator.allocate(1000), allocator.allocate(24 * MIB)
    stats = allocator.stats()
    assert stats.all.requested_bytes.current == 1000 + 24 * MIB
    assert stats.small_pool.allocated_bytes == cistern.Stat(1024, 1024, 1024, 0)
    assert stats.large_pool.allocated_bytes == cistern.Stat(24 * MIB, 24 * MIB, 24 * MIB, 0)
    assert (stats.small_pool.allocation.current, stats.large_pool.allocation.current) == (1, 1)
    assert stats.all.reserved_bytes.current == 1024 * MIB - allocator.memory_info().free
    assert stats.num_ooms == stats.num_misuses == 0 and stats.num_device_alloc > 0
    assert stats.peaks_exact is True and stats.host_bytes > 0

    allocator.free(large)
    stats = allocator.stats()
    assert stats.large_pool.allocated_bytes == cistern.Stat(0, 24 * MIB, 24 * MIB, 24 * MIB)
    allocator.reset_peak_stats()
    assert allocator.stats().large_pool.allocated_bytes.peak == 0
    allocator.free(small)


def test_the_dictionary_says_the_same(allocator):
    allocator.allocate(1000)
    stats, named = allocator.stats(), allocator.stats_dict()
    for group, suffix in ((stats.all, "all"), (stats.small_pool, "small_pool"), (stats.large_pool, "large_pool")):
        for field in dataclasses.fields(group):
            for value in dataclasses.fields(cistern.Stat):
                assert (named[f"{field.name}.{suffix}.{value.name}"]
                        == getattr(getattr(group, field.name), value.name))
    assert named["num_device_alloc"] == stats.num_device_alloc
    for name, count in dataclasses.asdict(stats.pages).items():
        assert named[f"pages.{name}"] == count
    assert named["memory_call_ns"] == stats.memory_call_ns


def test_pages_and_the_time_of_their_calls_are_counted(allocator):
    assert allocator.stats().pages == cistern.PageCounts(0, 0, 0, 0, 0, 0)
    block = allocator.allocate(24 * MIB)
    made = allocator.stats()
    assert made.pages.created > 0 and made.pages.returned == 0 and made.memory_call_ns > 0
    allocator.free(block)
    allocator.free(allocator.allocate(24 * MIB))  # a hit
    assert allocator.stats().memory_call_ns == made.memory_call_ns
    allocator.empty_cache()
    gone = allocator.stats()
    assert gone.pages.returned == gone.pages.created and gone.memory_call_ns > made.memory_call_ns


def test_without_pages_segments_take_time_alone():
    with cistern.Allocator("sim", conf="backing:segments") as allocator:
        allocator.free(allocator.allocate(24 * MIB))
        stats = allocator.stats()
        assert stats.pages == cistern.PageCounts(0, 0, 0, 0, 0, 0)
        assert stats.num_device_alloc == 1 and stats.memory_call_ns > 0


def test_an_earlier_library_fills_in_what_it_knows(monkeypatch):
    """One that knows fewer fields than this package leaves the others alone."""
    filled = ctypes.sizeof(ctypes.c_size_t) + ctypes.sizeof(_native.StatGroupStruct)

    class Earlier:
        @staticmethod
        def cistern_statistics(handle, struct):
            struct._obj.all.allocation.current = 7
            struct._obj.size = filled
            return 0

    from cistern import statistics
    monkeypatch.setattr(statistics, "lib", Earlier)
    read = statistics.read(1)
    assert read.all.allocation.current == 7
    assert read.large_pool.allocation.current == 0 and read.peaks_exact is False
    assert read.pages == cistern.PageCounts(0, 0, 0, 0, 0, 0) and read.memory_call_ns == 0


def test_a_snapshot_shows_each_block(allocator, tmp_path):
    blocks = {allocator.allocate(1000): 1024, allocator.allocate(24 * MIB): 24 * MIB}
    freed = allocator.allocate(5 * MIB)
    allocator.free(freed)
    shown = allocator.snapshot()
    assert shown["version"] == 1 and shown["device"].startswith("sim device 0")
    there = [block for segment in shown["segments"] for block in segment["blocks"]]
    assert {int(block["address"], 0): block["size"] for block in there
            if block["state"] == "allocated"} == blocks
    assert {block["requested"] for block in there if block["state"] == "allocated"} == {1000, 24 * MIB}
    for segment in shown["segments"]:
        assert sum(block["size"] for block in segment["blocks"]) == segment["size"]
    assert allocator.snapshot(tmp_path / "snapshot.json") is None
    assert json.loads((tmp_path / "snapshot.json").read_text()) == shown


# ---- The header ----------------------------------------------------------------------------------


def without_comments(text):
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def test_functions_are_declared_with_as_many_arguments():
    found = {}
    for name, arguments in re.findall(r"^CISTERN_API [\w* ]*?[ *]cistern_(\w+)\((.*?)\);",
                                      without_comments(HEADER), re.M | re.S):
        found[name] = 0 if arguments == "void" else arguments.count(",") + 1
    for name in ("version", "version_string", "status_name", "last_error"):
        del found[name]
    assert found == {name: len(those) for name, those in _native._ARGUMENTS.items()}


def test_structs_have_the_fields_of_the_header():
    types = {"size_t": ctypes.c_size_t, "uint64_t": ctypes.c_uint64, "int64_t": ctypes.c_int64,
             "int32_t": ctypes.c_int32, "cistern_stat_t": _native.StatStruct,
             "cistern_stat_group_t": _native.StatGroupStruct, "cistern_page_counts_t": _native.PageCountsStruct, "void*": ctypes.c_void_p,
             "const char*": ctypes.c_char_p,
             "const cistern_stack_gatherer_t*": ctypes.POINTER(_native.StackGathererStruct)}
    structs = {"sim_config": _native.SimConfig, "pool_id": _native.PoolIdStruct,
               "pool_options": _native.PoolOptions, "stat": _native.StatStruct,
               "stat_group": _native.StatGroupStruct, "page_counts": _native.PageCountsStruct, "statistics": _native.StatisticsStruct,
               "pinned_statistics": _native.PinnedStatisticsStruct, "overflow": _native.OverflowStruct,
               "stack_gatherer": _native.StackGathererStruct, "history_settings": _native.HistorySettings,
               "sleep_report": _native.SleepReportStruct, "wake_report": _native.WakeReportStruct,
               "memory_notice": _native.MemoryNoticeStruct}
    found = dict(re.findall(r"typedef struct cistern_(\w+)_t \{(.*?)\}", without_comments(HEADER), re.S))
    assert found.keys() == structs.keys()
    for name, body in found.items():
        body = re.sub(r"\w+ \(\*(\w+)\)\([^;]*\);", r"void* \1;", body)  # functions
        fields = [(field, types[kind]) for kind, field in re.findall(r"((?:const )?\w+\*?) (\w+);", body)]
        assert fields == list(structs[name]._fields_), name


@pytest.mark.parametrize("name, enum, prefix", [("status", cistern.Status, ""),
                                                ("contents", cistern.Contents, "CONTENTS_"),
                                                ("location", cistern.Location, "LOCATION_")])
def test_enumerators_are_those_of_the_header(name, enum, prefix):
    body = re.search(rf"typedef enum cistern_{name}_t \{{(.*?)\}}", HEADER, re.S)[1]
    found = re.findall(rf"^  CISTERN_{prefix}(\w+) = (\d+),", body, re.M)
    assert {each: int(number) for each, number in found} == {e.name: e.value for e in enum}


def test_the_version_is_the_headers():
    numbers = re.findall(r"#define CISTERN_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", HEADER)
    assert cistern.__version__ == ".".join(numbers)

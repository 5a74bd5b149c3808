"""What nobody should pass: each error names what was wrong, and nothing has changed."""

import cistern
import pytest

TOO_LARGE = 2**64


def calls(allocator, pool, buffer, capture):
    """Each verb that takes a number, or a stream, as a function of that."""
    numbers = {
        "size": [allocator.allocate, allocator.buffer, pool.allocate, pool.buffer,
                 lambda value: pool.saved(buffer.address, value)],
        "address": [allocator.free, allocator.block_size, allocator.base_allocation, allocator.location_of,
                    allocator.host_bytes_in,
                    lambda value: allocator.record_stream(value, None),
                    lambda value: pool.saved(value, 1),
                    lambda value: pool.set_contents(value, cistern.Contents.DROP)],
        "limit": [lambda value: setattr(allocator, "limit", value)],
        "stream": [lambda value: allocator.allocate(1, value), allocator.forget_stream,
                   allocator.register_stream,
                   lambda value: pool.allocate(1, value), lambda value: pool.buffer(1, value),
                   lambda value: allocator.record_stream(buffer.address, value),
                   lambda value: pool.stream_scope(value).__enter__(), allocator.capture,
                   buffer.record_stream, capture.include_stream, capture.launching],
        "capacity": [lambda value: cistern.Allocator.sim(capacity=value)],
        "granularity": [lambda value: cistern.Allocator.sim(granularity=value)],
        "gpu_lag_ns": [lambda value: cistern.Allocator.sim(gpu_lag_ns=value)],
        "ordinal": [lambda value: cistern.Allocator("sim", value),
                    lambda value: cistern.Allocator.sim(ordinal=value)],
        "device": [cistern.default],
    }
    return [(name, call) for name, those in numbers.items() for call in those]


def test_numbers_that_do_not_fit_are_refused_not_cut(allocator):
    with allocator.pool() as pool, allocator.buffer(1000) as buffer, allocator.stream() as stream:
        with stream.recording(), allocator.capture(stream) as capture:
            before = allocator.stats_dict()
            for name, call in calls(allocator, pool, buffer, capture):
                for wrong in (-1, TOO_LARGE, TOO_LARGE + 512):
                    with pytest.raises(cistern.InvalidArgumentError, match=f"{name} is {wrong}"):
                        call(wrong)
                for wrong in ("12", 1.0, b"1", [], object(), True):
                    with pytest.raises(TypeError, match=name):
                        call(wrong)
            assert allocator.stats_dict() == before
        capture.release()


def test_the_largest_number_is_out_of_memory_or_no_block(allocator):
    with pytest.raises(cistern.OutOfMemoryError):
        allocator.allocate(2**64 - 1)
    with pytest.raises(cistern.InvalidPointerError):
        allocator.free(2**64 - 1)


@pytest.mark.parametrize("wrong, kind, text", [
    (5, TypeError, "backend must be a str, not int"),
    (None, TypeError, "backend"),
    ("quantum", cistern.InvalidArgumentError, "unknown backend 'quantum': must be auto, cuda"),
    ("sim\0", cistern.InvalidArgumentError, "null character"),
    ("\ud800", cistern.InvalidArgumentError, "UTF-8"),
])
def test_a_backend_that_is_none(wrong, kind, text):
    with pytest.raises(kind, match=text):
        cistern.Allocator(wrong)


@pytest.mark.parametrize("wrong, kind, text", [
    ("speed:11", cistern.InvalidOptionError, "speed"),
    ("limit:much", cistern.InvalidOptionError, "limit.*much"),
    ("limit:1GiB\0", cistern.InvalidArgumentError, "null character"),
    ({"limit": "much"}, cistern.InvalidOptionError, "much"),
    ({"limit": 10**5000}, cistern.InvalidArgumentError, r"conf\['limit'\] is a number of 16610 bits"),
    ({"limit": -(10**5000)}, cistern.InvalidArgumentError, r"conf\['limit'\] is a number of"),
    ({10**5000: 2}, TypeError, "a name in conf must be a str, not int"),
    ({"limit": None}, TypeError, r"conf\['limit'\]"),
    ({b"limit": 2}, TypeError, "a name in conf must be a str, not bytes"),
    ({"limit": "1GiB,recycle:off"}, cistern.InvalidArgumentError, r"conf\['limit'\] has a comma"),
    ({"limit": "1GiB", "recycle:off,backing": "pages"}, cistern.InvalidArgumentError, "has a comma"),
    (["limit:1GiB"], TypeError, "conf must be a str or a mapping, not list"),
    (b"limit:1GiB", TypeError, "bytes"),
])
def test_options_that_are_none(wrong, kind, text):
    for make in (lambda conf: cistern.Allocator("sim", conf=conf),
                 lambda conf: cistern.Allocator.sim(conf=conf)):
        with pytest.raises(kind, match=text) as caught:
            make(wrong)
        if kind is not TypeError:
            assert isinstance(caught.value, ValueError)


def test_a_list_is_one_option():
    with cistern.Allocator("sim", conf={"roundup_power2_divisions": "[256:1,512:2,>:4]"}) as allocator:
        assert "256:1,512:2,>:4" in allocator.options


def test_a_simulated_device_that_cannot_be():
    for wrong in ({"granularity": 3}, {"ordinal": 8}, {"gpu_lag_ns": 2**64 - 1}):
        with pytest.raises(cistern.InvalidArgumentError, match=str(*wrong.values())):
            cistern.Allocator.sim(**wrong)


def test_what_no_argument_can_be_is_named(allocator):
    for call, name in ((allocator.allocate, "size"), (allocator.free, "address"),
                       (allocator.set_memory_fraction, "fraction")):
        with pytest.raises(cistern.InvalidArgumentError, match=name):
            call(10**5000)
    for wrong in (int, True):
        with pytest.raises(TypeError, match="fraction must be a number"):
            allocator.set_memory_fraction(wrong)
    with pytest.raises(cistern.InvalidArgumentError, match="path"):
        allocator.snapshot("\ud800")
    with pytest.raises(cistern.InvalidArgumentError, match="trace"):
        cistern.replay("\ud800")
    with pytest.raises(cistern.InvalidArgumentError, match=r"conf\['limit'\]"):
        cistern.replay("no.trace", conf={"limit": 10**5000})
    for capacity in ("\0", "\ud800"):
        with pytest.raises(cistern.InvalidArgumentError, match="capacity"):
            cistern.replay("no.trace", capacity=capacity)


def test_a_gpu_that_is_not_there():
    with pytest.raises(cistern.CisternError) as caught:
        cistern.Allocator("cuda", 77)
    # Without a driver, or in a build without CUDA, the ordinal is not looked at.
    other_reasons = (cistern.NoDeviceError, cistern.NotSupportedError)
    assert "77" in str(caught.value) or isinstance(caught.value, other_reasons)


def test_a_snapshot_that_cannot_be_written(allocator, tmp_path):
    with pytest.raises(cistern.FileError, match="no/such") as caught:
        allocator.snapshot(tmp_path / "no/such/folder.json")
    assert isinstance(caught.value, OSError)
    with pytest.raises(cistern.FileError, match=str(tmp_path)):
        allocator.snapshot(tmp_path)
    with pytest.raises(TypeError, match="path must be a path, not int"):
        allocator.snapshot(1)
    with pytest.raises(cistern.InvalidArgumentError, match="null character"):
        allocator.snapshot("a\0b")


def test_a_pool_that_is_none_or_another_allocators(allocator):
    with allocator.stream() as stream, stream.recording():
        with pytest.raises(TypeError, match="pool must be a cistern.Pool, not str"):
            allocator.capture(stream, "pool")
        with cistern.Allocator("sim") as other, other.pool() as pool:
            with pytest.raises(cistern.InvalidArgumentError, match="pool"):
                allocator.capture(stream, pool)


def test_an_object_of_the_wrong_kind_is_named(allocator):
    with allocator.pool() as pool, allocator.buffer(512) as buffer:
        for call, name in [
                (lambda: allocator.free(buffer), "address must be an int, not Buffer"),
                (lambda: allocator.free(pool), "address must be an int, not Pool"),
                (lambda: allocator.block_size(buffer), "address must be an int, not Buffer"),
                (lambda: allocator.pinned.free(buffer), "address must be an int, not Buffer"),
                (lambda: allocator.allocate(buffer), "size must be an int, not Buffer"),
                (lambda: allocator.allocate(512, allocator), "stream must be .*, not Allocator"),
                (lambda: allocator.allocate(512, pool), "stream must be .*, not Pool"),
                (lambda: pool.stream_scope(buffer), "stream must be .*, not Buffer"),
                (lambda: allocator.capture(None, allocator), "pool must be a cistern.Pool, not Allocator"),
                (lambda: allocator.forget_stream(pool), "stream must be .*, not Pool"),
                (lambda: cistern.Allocator(allocator), "backend must be a str, not Allocator")]:
            with pytest.raises(TypeError, match=name):
                call()


def test_a_flag_is_true_or_false(allocator):
    for name, call in [("use_on_oom", lambda wrong: allocator.pool(use_on_oom=wrong)),
                       ("no_split", lambda wrong: allocator.pool(no_split=wrong)),
                       ("virtual_memory", lambda wrong: cistern.Allocator.sim(virtual_memory=wrong)),
                       *((name, lambda wrong, name=name: cistern.replay(generate="train:1", **{name: wrong}))
                         for name in ("fit", "check", "no_recycle", "progress"))]:
        for wrong in ("no", 1, None):
            with pytest.raises(TypeError, match=f"^{name} must be a bool, not {type(wrong).__name__}$"):
                call(wrong)


def test_what_an_allocator_makes_is_not_made_by_its_class(allocator):
    for make, maker in [(lambda: cistern.Pool(allocator), "Allocator.pool"),
                        (lambda: cistern.Stream(0), "Allocator.stream"),
                        (lambda: cistern.Buffer(allocator, 512), "Allocator.buffer"),
                        (lambda: cistern.Capture(allocator, 0, None), "Allocator.capture"),
                        (lambda: cistern.Pinned(allocator), "Allocator.pinned"),
                        (lambda: cistern.PinnedBuffer(allocator, 512), "Pinned.buffer")]:
        with pytest.raises(TypeError, match=rf"is made by {maker}\(\)"):
            make()


def test_what_was_destroyed_is_said_to_be(allocator):
    pool = allocator.pool()
    pool.destroy()
    with pytest.raises(cistern.InvalidHandleError, match="is the handle of a pool that was destroyed; a pool is needed"):
        pool.allocate(512)


def test_every_error_has_its_status_and_base():
    kinds = [kind for kind in vars(cistern).values()
             if isinstance(kind, type) and issubclass(kind, cistern.CisternError)]
    assert len(kinds) == 15
    from cistern import errors
    for status in cistern.Status:
        made = errors.error_of(status, "why")
        assert made.status == status and str(made) == "why" and isinstance(made, cistern.CisternError)
    assert errors.error_of(99, "why").status == 99
    assert type(errors.error_of(99, "why")) is cistern.CisternError

// The set of streams that a block's next user waits for.
#include "allocator/engine/events/stream_uses.hpp"

#include <new>

#include "tests/support/catch.hpp"
#include "tests/support/host_memory/host_memory.hpp"

namespace cistern::test {
namespace {

std::vector<std::uintptr_t> inOrder(const StreamUses& uses) {
  std::vector<std::uintptr_t> raw;
  for (const Stream stream : uses) raw.push_back(stream.raw);
  return raw;
}

StreamUses noted(std::uintptr_t count) {
  StreamUses uses;
  for (std::uintptr_t raw = 1; raw <= count; ++raw) uses.note(Stream{raw});
  return uses;
}

}  // namespace

TEST_CASE("each stream that uses a block is there once, in the order in which they came",
          "[engine][part]") {
  StreamUses uses;
  CHECK(uses.empty());
  for (const std::uintptr_t raw : {5u, 3u, 5u, 9u, 3u, 1u}) uses.note(Stream{raw});
  uses.add(Stream{9});
  uses.add(Stream{2});
  CHECK(inOrder(uses) == std::vector<std::uintptr_t>{5, 3, 9, 1, 2});
  CHECK(uses.contains(Stream{1}));
  CHECK_FALSE(uses.contains(Stream{4}));
}

TEST_CASE("the default stream is a stream like others among a block's uses", "[engine][part]") {
  StreamUses uses;
  CHECK_FALSE(uses.contains(Stream{}));
  uses.add(Stream{});
  CHECK(uses.contains(Stream{}));
  CHECK(uses.size() == 1);
}

TEST_CASE("a set is the same whether its streams were noted or added", "[engine][part]") {
  StreamUses added(Stream{1});
  added.add(Stream{2});
  CHECK(inOrder(added) == inOrder(noted(2)));
  added.note(Stream{3});
  CHECK(inOrder(added) == inOrder(noted(3)));
}

#if defined(CISTERN_COUNTS_HOST_MEMORY)

TEST_CASE("a stream that there is no host memory to add makes the set one that nobody knows",
          "[engine][part]") {
  StreamUses uses;
  {
    const AtHostAllocations none([] { throw std::bad_alloc(); });
    uses.add(Stream{100});
  }
  CHECK(uses.unknown());
  CHECK_FALSE(uses.empty());
  uses.add(Stream{101});
  CHECK(uses.unknown());
  CHECK_FALSE(noted(3).unknown());
}

TEST_CASE("a stream that there is no host memory to note leaves the set as it was",
          "[engine][part]") {
  for (std::uintptr_t count = 0; count < 40; ++count) {
    StreamUses uses = noted(count);
    try {
      const AtHostAllocations none([] { throw std::bad_alloc(); });
      uses.note(Stream{100});
    } catch (const std::bad_alloc&) {
      CHECK(inOrder(uses) == inOrder(noted(count)));
    }
    uses.note(Stream{100});
    CHECK(uses.size() == count + 1);
    CHECK(*(uses.end() - 1) == Stream{100});
  }
}

#endif

}  // namespace cistern::test

#include "tests/golden/paths/paths.hpp"

#include <vector>

#include "allocator/base/bytes.hpp"

namespace cistern::golden {
namespace {

constexpr std::size_t kSmall = 512;
constexpr std::size_t kOtherSmall = 1024;
constexpr std::size_t kUncached = 40 * kMiB;  // larger than what a thread's cache ever keeps
constexpr std::size_t kPage = 8 * kMiB;

// Pages of one size, as otherwise what calls have cost before decides it; and nothing is done by
// another thread, which would be early in one run and late in the next.
constexpr const char* kPages = "backing:pages,page_size:8MiB,background_thread:false";
constexpr const char* kSegments = "backing:segments,background_thread:false";

// Holds more blocks at once than a path does later: whoever holds more than ever was held says so
// at once, under a lock, which programs do while they begin.
void reachPeak(Rig& rig, Stream on) {
  std::vector<void*> blocks(1'000);
  for (void*& block : blocks) block = rig.allocate(kOtherSmall, on);
  for (void* block : blocks) rig.free(block);
}

// ---- The thread's cache has it ------------------------------------------------------------------

void hitAllocate(Rig& rig, long times) {
  rig.free(rig.allocate(kSmall, rig.stream));
  for (long i = 0; i < times; ++i) rig.free(rig.allocateCounted(kSmall, rig.stream));
}

void hitFree(Rig& rig, long times) {
  rig.free(rig.allocate(kSmall, rig.stream));
  for (long i = 0; i < times; ++i) rig.freeCounted(rig.allocate(kSmall, rig.stream));
}

// ---- The stream's heap has it -------------------------------------------------------------------

// Nothing is freed, so that the cache has none of that size; the page has room for all.
void heapAllocateSmall(Rig& rig, long times) {
  reachPeak(rig, rig.stream);
  for (long i = 0; i < times; ++i) (void)rig.allocateCounted(kSmall, rig.stream);
}

// Cut off a free block of twice the size, and made one with it again.
void heapAllocate(Rig& rig, long times) {
  rig.free(rig.allocate(2 * kUncached, rig.stream));
  for (long i = 0; i < times; ++i) rig.free(rig.allocateCounted(kUncached, rig.stream));
}

void heapFree(Rig& rig, long times) {
  rig.free(rig.allocate(2 * kUncached, rig.stream));
  for (long i = 0; i < times; ++i) rig.freeCounted(rig.allocate(kUncached, rig.stream));
}

// ---- Another thread frees it --------------------------------------------------------------------

// The one block goes to the other thread and comes back, so that the owner's stack has none.
void remoteFree(Rig& rig, long times) {
  reachPeak(rig, rig.stream);
  for (long i = 0; i < times; ++i) {
    void* const block = rig.allocate(kSmall, rig.stream);
    rig.elsewhere([&] { rig.freeCounted(block); });
  }
}

// A thread that allocates too counts for itself, and says so now and then only.
void remoteFreeByWorker(Rig& rig, long times) {
  reachPeak(rig, rig.stream);
  rig.elsewhere([&] { rig.free(rig.allocate(kSmall, rig.other)); });
  for (long i = 0; i < times; ++i) {
    void* const block = rig.allocate(kSmall, rig.stream);
    rig.elsewhere([&] { rig.freeCounted(block); });
  }
}

void remoteTakeIn(Rig& rig, long times) {
  reachPeak(rig, rig.stream);
  void* block = rig.allocate(kSmall, rig.stream);
  for (long i = 0; i < times; ++i) {
    rig.elsewhere([&] { rig.free(block); });
    block = rig.allocateCounted(kSmall, rig.stream);
  }
}

// ---- Nobody has it ------------------------------------------------------------------------------

void grow(Rig& rig, long times) {
  for (long i = 0; i < times; ++i) {
    rig.free(rig.allocateCounted(kPage, rig.stream));
    rig.emptyCache();
  }
}

// Two free pages on either side of a block that is held serve a request as large as both.
void moveOwn(Rig& rig, long times) {
  for (long i = 0; i < times; ++i) {
    void* const low = rig.allocate(kPage, rig.stream);
    void* const held = rig.allocate(kPage, rig.stream);
    void* const high = rig.allocate(kPage, rig.stream);
    rig.free(low);
    rig.free(high);
    rig.free(rig.allocateCounted(2 * kPage, rig.stream));
    rig.free(held);
    rig.emptyCache();
  }
}

// A page that lies free on one stream, whose work is complete, serves another.
void moveOthers(Rig& rig, long times) {
  for (long i = 0; i < times; ++i) {
    rig.free(rig.allocate(kPage, rig.other));
    rig.free(rig.allocateCounted(kPage, rig.stream));
    rig.emptyCache();
  }
}

// ---- A graph capture ----------------------------------------------------------------------------

// One capture, with a kernel between an allocation and a free as in a program.
template <class Step>
void inCapture(Rig& rig, long times, Step step) {
  Graph graph(rig.pools());
  GraphCapture capture(graph, rig.stream);
  rig.free(rig.allocate(kPage, rig.stream));
  for (long i = 0; i < times; ++i) {
    step();
  }
  capture.end();
}

void captureAllocate(Rig& rig, long times) {
  inCapture(rig, times, [&] {
    void* const block = rig.allocateCounted(kPage, rig.stream);
    rig.work(rig.stream);
    rig.free(block);
  });
}

void captureFree(Rig& rig, long times) {
  inCapture(rig, times, [&] {
    void* const block = rig.allocate(kPage, rig.stream);
    rig.work(rig.stream);
    rig.freeCounted(block);
  });
}

void captureGrow(Rig& rig, long times) {
  for (long i = 0; i < times; ++i) {
    Graph graph(rig.pools());
    GraphCapture capture(graph, rig.stream);
    void* const block = rig.allocateCounted(kPage, rig.stream);
    rig.work(rig.stream);
    rig.free(block);
    capture.end();
    graph.reset();
    rig.emptyCache();
  }
}

// The graph orders the second stream behind the first, which has freed the block.
void captureOther(Rig& rig, long times) {
  inCapture(rig, times, [&] {
    rig.work(rig.stream);
    rig.free(rig.allocate(kPage, rig.stream));
    rig.order(rig.other, rig.stream);
    rig.free(rig.allocateCounted(kPage, rig.other));
    rig.work(rig.other);
    rig.order(rig.stream, rig.other);
  });
}

constexpr Path kPaths[] = {
    {"hit: allocate", "", hitAllocate},
    {"hit: free", "", hitFree},
    {"heap: allocate 512 B", "", heapAllocateSmall},
    {"heap: allocate 40 MiB", kPages, heapAllocate},
    {"heap: free 40 MiB", kPages, heapFree},
    {"remote: free by a thread that only frees", "", remoteFree},
    {"remote: free by a thread that allocates too", "", remoteFreeByWorker},
    {"remote: allocate what was freed so", "", remoteTakeIn},
    {"miss: a new page", kPages, grow},
    {"miss: a new segment", kSegments, grow},
    {"miss: a page of the stream's own", kPages, moveOwn},
    {"miss: a page of another stream", kPages, moveOthers},
    {"capture: allocate", kPages, captureAllocate},
    {"capture: free", kPages, captureFree},
    {"capture: a new page", kPages, captureGrow},
    {"capture: allocate what another stream freed", kPages, captureOther},
};

}  // namespace

std::span<const Path> paths() { return kPaths; }

}  // namespace cistern::golden

// A library's getter: one handle a thread and device, on the thread's current stream.
#include "tests/handles/fake_library.hpp"
#include "tests/support/threads.hpp"

namespace cistern::test {
namespace {

struct GetterTag {
  static constexpr const char* kName = "getter test";
};
using Library = FakeLibrary<GetterTag>;
FakeHandle* current() { return handles::currentHandle<Library>(); }

// Cannot say which stream it has.
struct SilentTag {
  static constexpr const char* kName = "silent";
};
struct Silent : FakeLibrary<SilentTag> {
  static Stream streamOf(Handle) = delete;
};

// Knows no streams.
struct Streamless {
  using Handle = FakeHandle*;
  static constexpr const char* kName = "streamless";
  static Handle create(int device) { return makeFakeHandle(device); }
};

}  // namespace

TEST_CASE("a thread gets the same handle each time, bound to its current stream", "[getter]") {
  FakeHandle* const mine = current();
  CHECK(mine->stream == Stream{});
  {
    const StreamGuard guard(Stream{7});
    CHECK(current() == mine);
    CHECK(mine->stream == Stream{7});
  }
  CHECK(current()->stream == Stream{});
}

TEST_CASE("the stream is not set again while the handle has it", "[getter]") {
  const StreamGuard guard(Stream{7});
  const int sets = current()->stream_sets;
  for (int i = 0; i < 100; ++i) CHECK(current()->stream_sets == sets);
}

TEST_CASE("a stream that the program set on the handle itself is set back", "[getter]") {
  const StreamGuard guard(Stream{7});
  Library::setStream(current(), Stream{8});
  CHECK(current()->stream == Stream{7});
}

TEST_CASE("a library that cannot tell its stream has it set on every call", "[getter]") {
  const int sets = handles::currentHandle<Silent>()->stream_sets;
  CHECK(handles::currentHandle<Silent>()->stream_sets == sets + 1);
}

TEST_CASE("a library without streams is only handed out", "[getter]") {
  const StreamGuard guard(Stream{7});
  FakeHandle* const mine = handles::currentHandle<Streamless>();
  CHECK(handles::currentHandle<Streamless>() == mine);
  CHECK(mine->stream_sets == 0);
}

TEST_CASE("a device guard says which device's handle, and its stream comes along", "[getter]") {
  FakeHandle* const here = current();
  const StreamGuard there_stream(Stream{3}, 2);
  {
    const DeviceGuard guard(2);
    CHECK(current() != here);
    CHECK(current()->device == 2);
    CHECK(current()->stream == Stream{3});
  }
  CHECK(current() == here);
  CHECK(here->stream == Stream{});
}

TEST_CASE("a thread's handle goes to the next thread when it ends", "[getter]") {
  FakeHandle* first = nullptr;
  FakeHandle* second = nullptr;
  onThread([&] {
    const StreamGuard guard(Stream{11});
    first = current();
  });
  onThread([&] { second = current(); });
  CHECK(first == second);
  CHECK(second->stream == Stream{});  // that of its thread, not the one before
}

TEST_CASE("a thousand short threads use as many handles as there were at once", "[getter]") {
  const int before = Library::created;
  const int free = int(handles::poolOf<Library>().counts(0).free);
  for (int i = 0; i < 1000; ++i) {
    onThread([] { current()->use(); });
  }
  CHECK(Library::created - before == (free > 0 ? 0 : 1));
}

TEST_CASE("a getter still works in the destructors of the thread's own objects", "[getter]") {
  static FakeHandle *during = nullptr, *at_end = nullptr;
  struct Reporter {
    ~Reporter() { at_end = current(); }
    int touched = 0;
  };
  onThread([] {
    thread_local Reporter reporter;
    reporter.touched = 1;
    during = current();
  });
  CHECK(during != nullptr);
  CHECK(during == at_end);
  CHECK(handles::poolOf<Library>().counts(0).live <= 1);  // this thread's, if it has one
}

TEST_CASE("64 threads on streams of their own get handles of their own", "[getter]") {
  constexpr int kThreads = 64;
  std::vector<FakeHandle*> got(kThreads);
  Gate gate(kThreads);
  onThreads(kThreads, [&](std::size_t t) {
    const StreamGuard guard(Stream{std::uintptr_t(t) + 1});
    for (int i = 0; i < 1000; ++i) {
      FakeHandle* const mine = current();
      mine->use();
      if (mine->stream != Stream{std::uintptr_t(t) + 1}) std::abort();
    }
    got[std::size_t(t)] = current();
    gate.pass();
  });
  CHECK(std::set<FakeHandle*>(got.begin(), got.end()).size() == kThreads);
}

}  // namespace cistern::test

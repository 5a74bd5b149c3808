// The fake libraries find what their callers do wrong.
#include <string>
#include <thread>
#include <vector>

#include "cistern/current.hpp"
#include "tests/handles/bound/fake_vendor.hpp"
#include "tests/support/catch.hpp"

namespace cistern::test {
namespace {

using Faults = std::vector<std::string>;

}  // namespace

TEST_CASE("a library tells of a use after a handle's end, and of a second end", "[bound]") {
  FakeState* const handle = FakeLibraries::newState();
  FakeLibraries::compute(handle);
  FakeLibraries::end(handle);
  CHECK(FakeLibraries::takeFaults() == Faults{});
  FakeLibraries::setStream(handle, 0);
  CHECK(FakeLibraries::takeFaults() == Faults{"set_stream: the handle is destroyed"});
  FakeLibraries::end(handle);
  CHECK(FakeLibraries::takeFaults() == Faults{"destroy: the handle is destroyed"});
}

TEST_CASE("a library tells of a handle on another device than its own", "[bound]") {
  FakeState* const handle = FakeLibraries::newState();
  Below::setCurrent(1);
  FakeLibraries::setStream(handle, 0);
  CHECK(FakeLibraries::takeFaults() ==
        Faults{"set_stream: another device than the handle's is current"});
  Below::setCurrent(0);
  FakeLibraries::compute(handle);
  FakeLibraries::end(handle);
  CHECK(FakeLibraries::takeFaults() == Faults{});
}

TEST_CASE("a library tells of work without the current stream", "[bound]") {
  FakeState* const handle = FakeLibraries::newState();
  const Stream stream = Below::newStream();
  {
    const StreamGuard guard(stream);
    FakeLibraries::compute(handle);
    CHECK(FakeLibraries::takeFaults() ==
          Faults{"compute: the handle's stream is not the current one"});
    FakeLibraries::setStream(handle, stream.raw);
    FakeLibraries::compute(handle);
  }
  FakeLibraries::setStream(handle, 0);
  FakeLibraries::end(handle);
  CHECK(FakeLibraries::takeFaults() == Faults{});
  Below::destroyStream(stream);
}

TEST_CASE("a library tells of two threads at once on a handle", "[bound]") {
  FakeState* const handle = FakeLibraries::newState();
  FakeLibraries::amid = [&] {
    FakeLibraries::amid = nullptr;
    std::thread([&] { (void)FakeLibraries::streamOf(handle); }).join();
  };
  FakeLibraries::compute(handle);
  CHECK(FakeLibraries::takeFaults() == Faults{"get_stream: another thread is in a call"});
  FakeLibraries::end(handle);
}

}  // namespace cistern::test

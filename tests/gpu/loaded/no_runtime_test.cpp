// A vendor's runtime is looked for when a program runs: here where there is none that can be
// loaded. The file is compiled for each vendor: VENDOR is its namespace. A process looks once, so
// the build runs the program once for each tag, with the environment that the cases of the tag are
// about.
#include "allocator/device/vendor/vendor.hpp"
#include "handles/vendor/runtime.hpp"
#include "tests/gpu/loaded/refusal.hpp"

#define VENDOR_TEXT_(name) #name
#define VENDOR_TEXT(name) VENDOR_TEXT_(name)

namespace cistern::no_runtime {
namespace {

using Catch::Matchers::ContainsSubstring;

constexpr const char* kBackend = VENDOR_TEXT(VENDOR);

std::string refusal() { return test::refusalOf(kBackend); }
std::string named() { return std::getenv(VENDOR_VARIABLE); }

}  // namespace

TEST_CASE("without a library there is no device, and the text says what was looked for", "[none]") {
  const Result<int> count = VENDOR::deviceCount();
  REQUIRE(!count.ok());
  CHECK(VENDOR::kTableEntry.compiled_in);
  CHECK(VENDOR::kTableEntry.runtime().empty());
  CHECK(count.error().kind == ErrorKind::kNoDevice);
  CHECK(count.error().code == 100);
  CHECK_THAT(refusal(), ContainsSubstring(VENDOR_TEXT(VENDOR) "ErrorNoDevice"));
  CHECK_THAT(refusal(), ContainsSubstring("no usable " VENDOR_GPU ": " VENDOR_VARIABLE " is "));
  CHECK_THAT(refusal(), ContainsSubstring(named()));
  CHECK_THAT(refusal(), ContainsSubstring("no such file"));
}

TEST_CASE("without a library auto goes on", "[none]") {
  CHECK(openDevice("auto")->backend() != kBackend);
}

TEST_CASE("without a library a handle's creation says what opening a device does", "[none]") {
  CHECK(VENDOR::runtime().devices.current() == -1);
  CHECK(VENDOR::runtime().computeMajor(0) == 0);
  CHECK(VENDOR::runtime().relaxCapture() == -1);
  CHECK_THROWS_WITH(handles::CreationScope(VENDOR::runtime(), 0), ContainsSubstring(named()));
}

TEST_CASE("what is no library is not loaded, and the loader's reason is told", "[broken]") {
  CHECK_THAT(refusal(), ContainsSubstring("cannot be loaded"));
  CHECK_THAT(refusal(), !ContainsSubstring("no such file"));
}

TEST_CASE("what is no regular file is named, and not opened", "[pipe]") {
  test::makePipe(named());
  CHECK_THAT(refusal(), ContainsSubstring(named() + " is a named pipe: must be a regular file"));
}

}  // namespace cistern::no_runtime

// HIP's runtime is looked for when a program runs: here where there is none that can be loaded. A
// process looks for it once, so the build runs this program once for each tag, with the environment
// that the cases of the tag are about.
#include <cstdlib>
#include <filesystem>

#include <sys/stat.h>

#include "allocator/device/vendor/vendor.hpp"
#include "cistern/device.hpp"
#include "handles/vendor/runtime.hpp"
#include "tests/support/catch.hpp"

using namespace cistern;
using Catch::Matchers::ContainsSubstring;

namespace {

std::string refusal() {
  try {
    openDevice("hip");
  } catch (const DeviceFailure& failure) {
    return failure.what();
  }
  return "nothing was thrown";
}

}  // namespace

TEST_CASE("without a library there is no device, and the text says what was looked for", "[none]") {
  const Result<int> count = hip::deviceCount();
  REQUIRE(!count.ok());
  CHECK(hip::kTableEntry.compiled_in);
  CHECK(count.error().kind == ErrorKind::kNoDevice);
  CHECK(count.error().code == 100);
  CHECK_THAT(refusal(), ContainsSubstring("hipErrorNoDevice"));
  CHECK_THAT(refusal(), ContainsSubstring("no usable AMD GPU"));
  CHECK_THAT(refusal(), ContainsSubstring(std::getenv("CISTERN_HIP_LIBRARY")));
  CHECK_THAT(refusal(), ContainsSubstring("no such file"));
}

TEST_CASE("without a library auto goes on", "[none]") {
  CHECK(openDevice("auto")->backend() != "hip");
}

TEST_CASE("without a library a handle's creation says what opening a device does", "[none]") {
  CHECK(hip::runtime().devices.current() == -1);
  CHECK(hip::runtime().computeMajor(0) == 0);
  CHECK(hip::runtime().relaxCapture() == -1);
  CHECK_THROWS_WITH(handles::CreationScope(hip::runtime(), 0),
                    ContainsSubstring(std::getenv("CISTERN_HIP_LIBRARY")));
}

TEST_CASE("what is no library is not loaded, and the loader's reason is told", "[broken]") {
  CHECK_THAT(refusal(), ContainsSubstring("cannot be loaded"));
  CHECK_THAT(refusal(), !ContainsSubstring("no such file"));
}

TEST_CASE("what is no regular file is named, and not opened", "[pipe]") {
  const std::string path = std::getenv("CISTERN_HIP_LIBRARY");
  std::filesystem::remove(path);
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);  // the loader would wait for its writer
  CHECK_THAT(refusal(), ContainsSubstring(path + " is a named pipe: must be a regular file"));
}

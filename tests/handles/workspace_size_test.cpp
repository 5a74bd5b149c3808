#include "handles/workspace_size.hpp"

#include <cstdlib>

#include "allocator/base/bytes.hpp"
#include "cistern/error.hpp"
#include "tests/support/catch.hpp"

using namespace cistern;
using namespace cistern::handles;

namespace {

/// Sets a variable of the environment, and removes it at the end.
struct Environment {
  Environment(const char* variable, const char* value) : name(variable) {
    setenv(variable, value, 1);
  }
  ~Environment() { unsetenv(name); }
  const char* name;
};

}  // namespace

TEST_CASE("a workspace configuration is the sum of its sizes times their counts", "[size]") {
  CHECK(parseWorkspaceConfig(":4096:2:16:8") == 8'519'680);
  CHECK(parseWorkspaceConfig(":16:8") == 128 * kKiB);
  CHECK(parseWorkspaceConfig(" :1:1 ") == kKiB);
  CHECK(parseWorkspaceConfig(":0:0") == 0);
  CHECK(parseWorkspaceConfig(":1048576:1024") == std::size_t{1} << 40);
}

TEST_CASE("a malformed workspace configuration is refused with what was wrong", "[size]") {
  CHECK_THROWS_WITH(parseWorkspaceConfig(":4096"),
                    "CUBLAS_WORKSPACE_CONFIG is ':4096': no count follows '4096'; it must be "
                    ":KiB:count, any number of times (:4096:2:16:8), up to 1 TiB in all");
  for (const char* text :
       {"", "4096:2", ":", "::", ":4096:", ":4096:two", ":-1:2", ":4096:2:", ":4096:2:16",
        ":4096:2,:16:8", ":4 096:2", ":1048576:1025", ":18446744073709551615:18446744073709551615",
        ":99999999999999999999:1"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parseWorkspaceConfig(text), OptionError);
  }
}

TEST_CASE("cuBLASLt's size is a number of KiB", "[size]") {
  CHECK(parseLtWorkspaceSize("1024") == kMiB);
  CHECK(parseLtWorkspaceSize("0") == 0);
  CHECK_THROWS_WITH(parseLtWorkspaceSize("1M"),
                    "CUBLASLT_WORKSPACE_SIZE is '1M': '1M' is not a whole number; it must be a "
                    "number of KiB, up to 1 TiB in all");
  CHECK_THROWS_AS(parseLtWorkspaceSize(""), OptionError);
  CHECK_THROWS_AS(parseLtWorkspaceSize("1073741825"), OptionError);
}

TEST_CASE("without a variable the device decides", "[size]") {
  CHECK(cublasWorkspaceBytes(8) == 8'519'680);
  CHECK(cublasWorkspaceBytes(9) == 32 * kMiB);
  CHECK(cublasLtWorkspaceBytes(10) == 32 * kMiB);
}

TEST_CASE("a variable overrides the default, each for its library", "[size]") {
  const Environment config("CUBLAS_WORKSPACE_CONFIG", ":64:2");
  CHECK(cublasWorkspaceBytes(9) == 128 * kKiB);
  CHECK(cublasLtWorkspaceBytes(9) == 32 * kMiB);
  const Environment size("CUBLASLT_WORKSPACE_SIZE", "512");
  CHECK(cublasLtWorkspaceBytes(9) == 512 * kKiB);
  const Environment wrong("CUBLAS_WORKSPACE_CONFIG", "64");
  CHECK_THROWS_AS(cublasWorkspaceBytes(9), OptionError);
}

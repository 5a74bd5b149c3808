// The fake runtime in place of HIP's.
#include "tests/handles/bound/fake_vendor.hpp"

const cistern::handles::VendorRuntime& cistern::hip::runtime() {
  return test::FakeRuntime::table();
}

// The table from vendor codes to kinds, at the codes that the engine decides by.
#include "allocator/device/vendor/error_kind.hpp"

#include "tests/support/catch.hpp"

using namespace cistern;

TEST_CASE("vendor codes mean what the engine decides by") {
  CHECK(errorKind(2) == ErrorKind::kOutOfMemory);
  CHECK(errorKind(1) == ErrorKind::kInvalidValue);
  CHECK(errorKind(400) == ErrorKind::kInvalidHandle);
  CHECK(errorKind(709) == ErrorKind::kInvalidHandle);
  CHECK(errorKind(801) == ErrorKind::kNotSupported);
  CHECK(errorKind(900) == ErrorKind::kCaptureForbidden);
  CHECK(errorKind(901) == ErrorKind::kCaptureInvalidated);
}

TEST_CASE("a missing driver is no device, a broken one is a failure of its own") {
  for (const int code : {35, 100, 101}) CHECK(errorKind(code) == ErrorKind::kNoDevice);
  for (const int code : {3, 46, 802, 803, 804, 999}) CHECK(errorKind(code) == ErrorKind::kOther);
}

TEST_CASE("a runtime that process exit took down is none of the known kinds") {
  CHECK(errorKind(4) == ErrorKind::kOther);
}

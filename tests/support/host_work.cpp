#include "tests/support/host_work.hpp"

#include <span>

#include "tests/support/words.hpp"

namespace cistern::test {
namespace {

std::span<std::uint32_t> wordsAt(Address address, std::size_t bytes) {
  return {static_cast<std::uint32_t*>(toPointer(address)), bytes / sizeof(std::uint32_t)};
}

}  // namespace

HostWork::HostWork() {
  addHostBackend();
  device_ = openDevice("host");
}

void HostWork::fill(Stream stream, Address address, std::size_t bytes, std::uint32_t seed) {
  host().launch(stream, [=] { makeWords(wordsAt(address, bytes), seed); }).orThrow();
}

void HostWork::verify(Stream stream, Address address, std::size_t bytes, std::uint32_t seed) {
  const auto check = [=, this] { wrong_words_ += wrongWords(wordsAt(address, bytes), seed); };
  host().launch(stream, check).orThrow();
}

std::uint64_t HostWork::mismatches() {
  device_->synchronizeDevice().orThrow();
  return wrong_words_;
}

void HostWork::delay(Stream stream, std::uint64_t) {
  host()
      .launch(
          stream, [] {}, HostDevice::When::kLate)
      .orThrow();
}

}  // namespace cistern::test

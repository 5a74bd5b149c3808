// The functions that Python calls: they put the allocator in PyTorch's place.
#include <cstdint>
#include <exception>
#include <limits>
#include <string>

#include <c10/core/Allocator.h>

#include "torch_allocator.hpp"
#include "torch_pinned.hpp"

namespace {

/// PyTorch registers its own allocators by a priority. Since 2.12 that of the device has
/// priority 1.
constexpr std::uint8_t kHighest = std::numeric_limits<std::uint8_t>::max();

}  // namespace

/// Null, or why not: static storage, or until the next call. To be called once, before CUDA is
/// initialised.
extern "C" __attribute__((visibility("default"))) const char* cistern_torch_install() {
  using namespace cistern_torch;
  if (installed() != nullptr) return nullptr;
  if (theirs::get() != nullptr && theirs::get()->initialized())
    return "CUDA is initialised already: tensors of PyTorch's own allocator may be there";
  const std::string chosen = theirs::get() != nullptr ? theirs::get()->name() : "native";
  if (chosen != "native")
    TORCH_WARN("cistern: the setting backend:", chosen, " has no effect: Cistern is in use");
  auto* const made = new TorchAllocator(chosen);
  setInstalled(made);
  theirs::allocator.store(made);
  c10::SetAllocator(c10::kCUDA, made, kHighest);
  at::setHostAllocator(at::kCUDA, &pinned(), kHighest);
  return nullptr;
}

/// A tensor of the device may be used on the stream, although none is allocated on it. Null, or why
/// it could not be noted: static storage, or until the next call. Pre: installed.
extern "C" __attribute__((visibility("default"))) const char* cistern_torch_register_stream(
    int device, void* stream) {
  using namespace cistern_torch;
  static thread_local std::string why;
  try {
    const auto raw = reinterpret_cast<std::uintptr_t>(stream);
    installed()->at(c10::DeviceIndex(device)).allocator.registerStream(cistern::Stream(raw));
    return nullptr;
  } catch (const std::exception& error) {
    why = error.what();
    return why.c_str();
  }
}

/// The release of PyTorch that this was built against, 211 for 2.11.
extern "C" __attribute__((visibility("default"))) int cistern_torch_built_against() {
  return CISTERN_TORCH;
}

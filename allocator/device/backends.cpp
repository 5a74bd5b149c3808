#include "allocator/device/backends.hpp"

#include <array>
#include <atomic>

#include "allocator/base/check.hpp"
#include "allocator/device/sim/sim_backend.hpp"
#include "allocator/device/vendor/vendor.hpp"

namespace cistern {
namespace {

constexpr std::size_t kMostBackends = 8;

// Filled from the front; null behind the last row.
constinit std::array<std::atomic<const Backend*>, kMostBackends> backend_table{
    &cuda::kTableEntry, &hip::kTableEntry, &sim::kTableEntry};

}  // namespace

std::vector<const Backend*> backends() {
  std::vector<const Backend*> rows;
  for (const auto& slot : backend_table) {
    if (const Backend* const row = slot.load(std::memory_order_acquire)) rows.push_back(row);
  }
  return rows;
}

const Backend* findBackend(std::string_view name) noexcept {
  for (const auto& slot : backend_table) {
    const Backend* const row = slot.load(std::memory_order_acquire);
    if (row == nullptr || row->name == name) return row;
  }
  return nullptr;
}

bool isSimulated(std::string_view name) noexcept {
  const Backend* const backend = findBackend(name);
  return backend != nullptr && backend->simulated;
}

std::string backendNames() {
  const std::vector<const Backend*> rows = backends();
  std::string names;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i > 0) names += i + 1 < rows.size() ? ", " : " or ";
    names += rows[i]->name;
  }
  return names;
}

void addBackend(const Backend& backend) noexcept {
  CISTERN_CHECK(findBackend(backend.name) == nullptr);
  for (auto& slot : backend_table) {
    const Backend* there = nullptr;
    if (slot.compare_exchange_strong(there, &backend)) return;
  }
  constexpr bool kThereIsRoomForABackend = false;
  CISTERN_CHECK(kThereIsRoomForABackend);
}

}  // namespace cistern

#include <atomic>

#include <fmt/format.h>

#include "cistern/pool.hpp"

namespace cistern {

MempoolId_t graphPoolHandle(bool is_user_created) noexcept {
  static std::atomic<std::uint64_t> next_uuid{1}, next_uid{1};
  if (is_user_created) return {0, next_uid.fetch_add(1, std::memory_order_relaxed)};
  return {next_uuid.fetch_add(1, std::memory_order_relaxed), 0};
}

std::string poolName(MempoolId_t id) { return fmt::format("{{{}, {}}}", id.uuid, id.uid); }

}  // namespace cistern

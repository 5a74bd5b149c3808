// A way to serve a trace's requests. Each policy is one file; policies.cpp lists them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "cistern/device.hpp"
#include "cistern/options.hpp"
#include "cistern/statistics.hpp"

namespace cistern::command {

/// A block that a policy gave out.
struct Held {
  void* pointer = nullptr;  ///< null for 0 bytes
  std::uint64_t bytes = 0;  ///< as asked
  Stream stream;
};

/// The bytes that a policy has taken from the device.
struct ReservedBytes {
  std::uint64_t now = 0;
  std::uint64_t peak = 0;  ///< the most at once
};

/// Made anew for each replay, and holding nothing of the device before its first request. The
/// replay gives every block back before the policy goes.
class Policy {
 public:
  Policy() = default;
  virtual ~Policy() = default;
  Policy(const Policy&) = delete;
  Policy& operator=(const Policy&) = delete;

  /// Throws Error, whose first line is the reason and whose others say more, when there is no room.
  /// Null for 0 bytes.
  virtual void* allocate(std::size_t bytes, Stream stream) = 0;
  /// Pre: allocate gave it out, and it is not null.
  virtual void free(const Held& block) = 0;
  /// The program has freed the block, but other streams still use it. Returns whether the policy
  /// took the block back all the same. Otherwise free() follows when these uses have ended, as when
  /// PyTorch's allocator sees its events complete. Pre: as free().
  virtual bool freeWhileUsed(const Held&) { return false; }
  /// Does not change how it serves the next requests.
  virtual ReservedBytes reserved() const = 0;
  /// Host memory that the bookkeeping takes now.
  virtual std::uint64_t hostBytes() const { return 0; }
  /// Counts of page events; all 0 if there are no pages.
  virtual PageCounts pageCounts() const { return {}; }
};

struct PolicySettings {
  Options options;                        ///< for those that have any
  std::optional<std::uint64_t> capacity;  ///< the most that may be reserved
};

/// One row of the list of policies.
struct PolicyKind {
  std::string_view name;
  std::string_view title;  ///< for a picture
  std::string_view text;   ///< for --help
  bool takes_capacity;     ///< whether it can be held to PolicySettings::capacity
  bool waits_for_uses;     ///< whether a freed block stays taken while other streams use it
  bool reads_options;      ///< whether PolicySettings::options matter to it
  std::unique_ptr<Policy> (*make)(Device& device, const PolicySettings& settings);
  /// Why it cannot run on that device; empty when it can.
  std::string (*lacks)(const Device& device);
};

std::span<const PolicyKind> policyKinds();
/// `begin`, and a line for each policy: the help of an option that takes one.
std::string policyHelp(std::string begin);
/// Throws UsageError naming the value and what is allowed.
const PolicyKind& policyKind(std::string_view name);

// cistern_policy.cpp
std::unique_ptr<Policy> makeCistern(Device& device, const PolicySettings& settings);
// torch_policy.cpp
std::unique_ptr<Policy> makeTorch(Device& device, const PolicySettings& settings);
// peers/torch_expandable_policy.cpp
std::unique_ptr<Policy> makeTorchExpandable(Device& device, const PolicySettings& settings);
// peers/driver_pool_policy.cpp
std::unique_ptr<Policy> makeDriverPool(Device& device, const PolicySettings& settings);
// direct_policy.cpp
std::unique_ptr<Policy> makeDirect(Device& device, const PolicySettings& settings);
// async_policy.cpp
std::unique_ptr<Policy> makeAsync(Device& device, const PolicySettings& settings);
std::string asyncLacks(const Device& device);

}  // namespace cistern::command

// The labels of the process: a tree of names. Histories of all allocators number labels alike.
#pragma once

#include <cstdint>
#include <string>

#include "allocator/history/numbered_tree.hpp"
#include "cistern/history.hpp"

namespace cistern {

/// Label 0 is no label. Thread-safe; whole in a child of fork.
class Labels {
 public:
  static constexpr std::size_t kMostPathBytes = 4'096;

  using Label = NumberedTree<std::string>::Node;  ///< `value`: its name

  /// The calling thread's innermost label. If the host is short of memory, or there are kMost
  /// labels, the innermost one that has a number.
  static std::uint32_t current() noexcept;
  /// Pre: current() has returned it, or it is a parent of such. Throws std::bad_alloc.
  static Label label(std::uint32_t number);
  static std::uint32_t parentOf(std::uint32_t number) noexcept;
  /// The name with those of the labels around it. "… / " stands for the outermost ones of a path
  /// beyond some kMostPathBytes. Throws std::bad_alloc.
  static std::string pathOf(std::uint32_t number);

 private:
  friend class LabelScope;

  static constexpr std::size_t kMost = std::size_t{1} << 20;
  static constexpr std::size_t kMostBytes = 255;  ///< of a name

  struct Tree;
  static std::uint32_t numberOf(LabelScope* scope) noexcept;

  inline static constinit thread_local LabelScope* innermost_ = nullptr;
};

}  // namespace cistern

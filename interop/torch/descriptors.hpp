// Hands file descriptors to other processes of the same user, over a unix socket that a thread of
// this process answers. pidfd_getfd would need no thread, but a process may take descriptors out of
// another only where it may trace it: not out of its parent on most desktops, nor in most
// containers.
//
// No header of PyTorch's is needed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace cistern_torch {

/// Descriptors that are closed with it.
class Descriptors {
 public:
  Descriptors() = default;
  ~Descriptors();
  Descriptors(Descriptors&& other) noexcept : numbers_(std::move(other.numbers_)) {
    other.numbers_.clear();
  }
  Descriptors(const Descriptors&) = delete;
  Descriptors& operator=(const Descriptors&) = delete;

  const std::vector<int>& numbers() const { return numbers_; }
  void add(int number) { numbers_.push_back(number); }
  /// Adds one for the same file. Throws std::runtime_error when there is none left.
  void addCopy(int number);

 private:
  std::vector<int> numbers_;
};

/// What is sent for a key; none for one that means nothing (any more). Called by the answering
/// thread.
using Offer = std::function<Descriptors(std::uint64_t key)>;

/// Answers until the process ends, whichever thread ends before. The socket's name, which nobody
/// else has. Throws std::runtime_error, saying what the system refused.
std::string answerOthers(Offer offer);

/// The descriptors that the process behind the name offers for the key. Throws std::runtime_error
/// that says why there are none: it has ended, it is another user's, it offers nothing for the key,
/// or this process has no descriptor left. Waits for at most ten seconds.
Descriptors askForDescriptors(const std::string& name, std::uint64_t key);

}  // namespace cistern_torch

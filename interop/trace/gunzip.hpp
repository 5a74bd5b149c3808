// Unpacks gzip data as it comes, and stops before it takes more memory than such data deserves. A
// few kilobytes can be made to unpack to gigabytes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct z_stream_s;

namespace cistern::trace {

class Gunzip {
 public:
  /// `name` is what errors call the file. `most` as in ReadLimits.
  Gunzip(std::string name, std::optional<std::uint64_t> most);
  ~Gunzip();
  Gunzip(const Gunzip&) = delete;
  Gunzip& operator=(const Gunzip&) = delete;

  /// Whether a file that begins so is gzip.
  static bool isZipped(std::string_view start) { return start.substr(0, 2) == "\x1f\x8b"; }

  /// The next bytes of the file. Returns what they unpack to, which is valid until the next call.
  /// Throws TraceError for damaged data, and if the file unpacks to too much. Throws it also for
  /// other data behind the end (except zeros, which fill up tapes).
  std::string_view take(std::string_view bytes);

  /// Throws TraceError if the data ended early. Call it behind the last byte of the file.
  void finish() const;

 private:
  void inflateSome();
  /// Behind the end of a member: goes to the next if there is one.
  void nextMember();
  void requireNoMoreThanAllowed() const;
  [[noreturn]] void fail(const std::string& what) const;

  std::string name_;
  std::optional<std::uint64_t> most_;
  std::unique_ptr<z_stream_s> zip_;
  std::uint64_t taken_ = 0;     ///< bytes of the file that were given to take() before this call
  std::string content_;         ///< what the bytes of the last take() unpack to
  std::uint64_t unpacked_ = 0;  ///< bytes that the file has unpacked to
  bool ended_ = false;          ///< at the end of a member; a file may have several
};

}  // namespace cistern::trace

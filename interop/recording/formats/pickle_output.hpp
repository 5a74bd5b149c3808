// Writes plain data as a pickle of protocol 4, with the opcodes alone that PyTorch's viewer knows.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "interop/recording/formats/text_output.hpp"

namespace cistern::recording {

/// A container is begun, filled and ended. A dict has keys and values in turn. Throws
/// trace::TraceError as trace::OutputFile does.
class PickleOutput {
 public:
  explicit PickleOutput(const std::filesystem::path& path) : out_(path) { out_.add("\x80\x04"); }

  void beginDict() { out_.add("}("); }
  void endDict() { out_.add("u"); }
  void beginList() { out_.add("]("); }
  void endList() { out_.add("e"); }
  /// Appends to the list what was written so far. A reader has to hold no more than that at once.
  void nextBatch() { out_.add("e("); }
  /// Makes a tuple of the last two values.
  void pair() { out_.add("\x86"); }
  void boolean(bool value) { out_.add(value ? "\x88" : "\x89"); }
  /// Any number of 64 bits; Python reads it as unsigned.
  void number(std::uint64_t value);
  /// A text of fewer than 2^32 bytes. The same text is written once.
  void text(std::string_view text);
  /// The value begun or written last gets a number, for recall() to write it again. Pre: it is
  /// empty, or ended.
  std::uint32_t remember();
  void recall(std::uint32_t number);

  void close() {
    out_.add(".");
    out_.close();
  }

 private:
  // So that a text is looked up without a copy of it.
  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };

  void little(std::uint64_t value, std::size_t width);

  TextOutput out_;
  std::uint32_t remembered_ = 0;
  std::unordered_map<std::string, std::uint32_t, TextHash, std::equal_to<>> texts_;
};

}  // namespace cistern::recording

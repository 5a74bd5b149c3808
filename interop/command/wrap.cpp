#include "interop/command/wrap.hpp"

#include <algorithm>

#include "allocator/base/printable.hpp"

namespace cistern::command {

std::string wrapped(std::string_view text, std::string_view indent, std::string_view first) {
  std::string lines;
  std::string line(first);
  bool empty = true;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    if (!empty && columnsOf(line) + 1 + columnsOf(word) > kPageWidth) {
      lines += line + '\n';
      line = indent;
      empty = true;
    }
    if (!empty) line += ' ';
    line += word;
    empty = false;
  }
  return lines + line + '\n';
}

}  // namespace cistern::command

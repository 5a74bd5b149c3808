#include <utility>

#include <fmt/format.h>

#include "cistern/handles/library.hpp"

namespace cistern {
namespace {

std::string messageOf(const std::string& library, const std::string& call, int code,
                      const std::string& name, const std::string& text) {
  const std::string shown =
      name.empty() ? fmt::format("status {}", code) : fmt::format("{} ({})", name, code);
  return fmt::format("{}: {} failed: {}{}{}", library, call, shown, text.empty() ? "" : ": ", text);
}

}  // namespace

// The message is made first: the base is initialised before the members take the texts.
LibraryError::LibraryError(std::string library, std::string call, int code, std::string name,
                           std::string text)
    : Error(messageOf(library, call, code, name, text)),
      library_(std::move(library)),
      call_(std::move(call)),
      code_(code) {}

}  // namespace cistern

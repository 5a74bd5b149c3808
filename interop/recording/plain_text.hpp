// Text out of untrusted files, made fit for JSON.
#pragma once

#include <string>

namespace cistern::recording {

/// `text` with each byte that is no part of UTF-8 replaced by U+FFFD.
std::string plainText(std::string text);

}  // namespace cistern::recording

#include "interop/report/report_page.hpp"

#include <string_view>

#include "cistern/error.hpp"
#include "interop/report/base64.hpp"
#include "interop/report/page_text.hpp"

namespace cistern::report {
namespace {

constexpr std::string_view kDataMarker = "<!-- cistern:data -->";

}  // namespace

std::string missingPackages() { return std::string(packagesNotFound()); }

std::string pageOf(std::string_view model) {
  const std::string_view page = pageText();
  const std::size_t marker = page.find(kDataMarker);
  if (marker == page.npos) throw Error("this build's page has no place for the data");
  const std::string data = base64(model);
  std::string whole;
  whole.reserve(page.size() + data.size());
  whole += page.substr(0, marker);
  whole += data;
  whole += page.substr(marker + kDataMarker.size());
  return whole;
}

}  // namespace cistern::report

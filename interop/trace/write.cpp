#include "interop/trace/write.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>

#include "allocator/base/bytes.hpp"
#include "allocator/base/replaced_file.hpp"
#include "interop/trace/header.hpp"

namespace cistern::trace {
namespace {

constexpr std::size_t kWriteChunk = kMiB;

// zlib also writes plain files, so one path serves both.
class OutputFile {
 public:
  explicit OutputFile(const std::filesystem::path& path) try : name_(path.string()), whole_(name_) {
    const char* const mode = path.extension() == ".gz" ? "wb" : "wbT";
    file_ = gzdopen(dup(whole_.descriptor()), mode);
    if (!file_) fail(errno);
  } catch (const ReplacedFile::Failure& failure) {
    throw TraceError(path.string(), refusal(failure.why));
  }
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile() {
    if (file_) gzclose_w(file_);
  }

  void write(fmt::memory_buffer& text) {
    const auto size = static_cast<unsigned>(text.size());
    if (size > 0 && gzwrite(file_, text.data(), size) == 0) fail(errno);
    text.clear();
  }

  // The last bytes leave here, so a full disk may show only now.
  void close() try {
    gzFile file = file_;
    file_ = nullptr;
    if (gzclose_w(file) != Z_OK) fail(errno);
    whole_.take();
  } catch (const ReplacedFile::Failure& failure) {
    fail(failure.why);
  }

 private:
  static std::string refusal(int why) {
    return fmt::format("cannot be written: {}", std::strerror(why));
  }
  [[noreturn]] void fail(int why) const { throw TraceError(name_, refusal(why)); }

  std::string name_;
  ReplacedFile whole_;
  gzFile file_ = nullptr;
};

void appendComment(fmt::memory_buffer& text, std::string comment) {
  const auto breaks = [](char c) { return c == '\n' || c == '\r'; };
  std::replace_if(comment.begin(), comment.end(), breaks, ' ');
  fmt::format_to(fmt::appender(text), "# {}\n", comment);
}

void appendEvent(fmt::memory_buffer& text, const TraceEvent& event) {
  if (event.isAllocation()) {
    fmt::format_to(fmt::appender(text), "a {} {} {}\n", event.value, event.stream, event.delta_us);
  } else {
    const char verb = event.kind == EventKind::kFree ? 'f' : 'e';
    fmt::format_to(fmt::appender(text), "{} {} {}\n", verb, event.value, event.delta_us);
  }
}

}  // namespace

void writeTrace(const Trace& trace, const std::filesystem::path& path) {
  OutputFile file(path);
  fmt::memory_buffer text;
  Header header;
  header.name = trace.name;
  header.stream_uses = trace.stream_uses;
  appendComment(text, headerComment(header));
  for (const std::string& note : trace.notes) appendComment(text, note);
  for (const TraceEvent& event : trace.events) {
    if (text.size() >= kWriteChunk) file.write(text);
    appendEvent(text, event);
  }
  file.write(text);
  file.close();
}

}  // namespace cistern::trace

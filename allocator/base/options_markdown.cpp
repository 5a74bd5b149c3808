// docs/options.md, written from the table.
#include <fmt/format.h>

#include "allocator/base/option_table.hpp"

namespace cistern {
namespace {

constexpr const char* kHead = R"(# Options

<!-- Written by `cistern options --markdown` from allocator/base/option_table.cpp. -->

Set them in the environment, or pass the same text to `Options::parse`:

```sh
CISTERN_CONF=max_split_size:256MiB,garbage_collection_threshold:0.8
```

An option that is not named keeps its default; setting one never resets another; of two settings of
the same option the later one counts. An unknown option, or a value that is not allowed, is an
error that says what is. Sizes are written as `4096`, `20M`, `20MiB` or `1.5 GB`, all in powers of
1024. PyTorch's spellings are accepted where they mean the same; those that end in `_mb` take whole
MiB.

| option | default | PyTorch's spelling |
|---|---|---|
)";

}  // namespace

std::string optionsMarkdown() {
  std::string page = kHead;
  for (const OptionRow& row : optionTable()) {
    page += fmt::format("| [`{0}`](#{0}) | {1} | {2} |\n", row.name, row.print(Options{}),
                        row.pytorch.empty() ? "" : fmt::format("`{}`", row.pytorch));
  }
  for (const OptionRow& row : optionTable()) {
    page += fmt::format("\n## {}\n\n{}\n\nAllowed: {}. Default: {}.\n", row.name, row.text,
                        row.allowed(), row.print(Options{}));
  }
  return page;
}

}  // namespace cistern

// How the picture looks, on a white page and on a dark one.
#pragma once

#include <string_view>

namespace cistern::command {

/// The number of colours: classes s0 to s5 in kStyle. People who see no red or no green can tell
/// them apart. Each has a contrast of at least 4.5 to 1 against its page.
inline constexpr std::size_t kColours = 6;

inline constexpr std::string_view kStyle = R"(
    text { font: 12px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", Helvetica, Arial, sans-serif; fill: #57606a; }
    .title { font-size: 18px; font-weight: 600; fill: #1b1f24; }
    .subtitle { font-size: 13px; }
    .note { font-size: 11px; }
    .name { font-size: 13px; font-weight: 600; }
    .y { text-anchor: end; }
    .x { text-anchor: middle; }
    .ground { fill: #ffffff; stroke: #d0d7de; }
    .grid { stroke: #d8dee4; }
    .base { stroke: #8c959f; }
    .asked { fill: #8292a4; fill-opacity: .34; }
    .line { fill: none; stroke-width: 1.8; stroke-linejoin: round; }
    .first { stroke-width: 2.6; }
    .mark { fill: none; stroke-width: 1.8; }
    .peak { font-size: 11px; stroke: #ffffff; stroke-width: 3px; paint-order: stroke; }
    .cap { fill: none; stroke: #57606a; stroke-width: 1.4; stroke-dasharray: 6 4; }
    .leader { fill: none; stroke-opacity: .6; }
    .s0 { stroke: #0969c7; } .f0 { fill: #0969c7; }
    .s1 { stroke: #c44a00; } .f1 { fill: #c44a00; }
    .s2 { stroke: #9b4a9b; } .f2 { fill: #9b4a9b; }
    .s3 { stroke: #007a5a; } .f3 { fill: #007a5a; }
    .s4 { stroke: #4b3a00; } .f4 { fill: #4b3a00; }
    .s5 { stroke: #57606a; } .f5 { fill: #57606a; }
    @media (prefers-color-scheme: dark) {
      text { fill: #9198a1; }
      .title { fill: #f0f6fc; }
      .ground { fill: #0d1117; stroke: #3d444d; }
      .grid { stroke: #2a3038; }
      .peak { stroke: #0d1117; }
      .cap { stroke: #9198a1; }
      .base { stroke: #656c76; }
      .asked { fill: #8f9fb2; }
      .s0 { stroke: #4da3ff; } .f0 { fill: #4da3ff; }
      .s1 { stroke: #f0883e; } .f1 { fill: #f0883e; }
      .s2 { stroke: #e07bc0; } .f2 { fill: #e07bc0; }
      .s3 { stroke: #2fbf8f; } .f3 { fill: #2fbf8f; }
      .s4 { stroke: #f2e05a; } .f4 { fill: #f2e05a; }
      .s5 { stroke: #d1d7e0; } .f5 { fill: #d1d7e0; }
    }
  )";

}  // namespace cistern::command

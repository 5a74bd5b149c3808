#include "interop/command/plot/picture.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "allocator/base/bytes.hpp"
#include "interop/command/plot/field.hpp"
#include "interop/command/plot/labels.hpp"
#include "interop/command/plot/style.hpp"

namespace cistern::command {
namespace {

constexpr double kWidth = 972, kHeight = 450, kMargin = 24;
constexpr double kLeft = 58, kRight = kLeft + double(kPictureColumns), kTop = 100, kBottom = 386;
constexpr double kHeadroom = 1.04;  // of the highest curve
constexpr double kLabelLeft = kRight + 26, kLabelHeight = 40;

Field fieldFor(const Picture& picture) {
  std::uint64_t most = std::max<std::uint64_t>(picture.asked.curve.peak(), 1);
  for (const Series& series : picture.reserved) most = std::max(most, series.curve.peak());
  most = std::max(most, picture.cap.value_or(0));
  return {kLeft, kRight, kTop, kBottom, kHeadroom * double(most)};
}

class Drawing {
 public:
  explicit Drawing(const Picture& picture) : picture_(picture), field_(fieldFor(picture)) {}

  std::string text() {
    begin();
    memoryAxisLines();
    timeAxisLine();
    area();
    cap();
    for (std::size_t i = picture_.reserved.size(); i-- > 0;) line(i);
    peaks();
    labels();
    out_ += "</svg>\n";
    return std::move(out_);
  }

 private:
  void begin() {
    out_ += fmt::format(
        R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0} {1}" width="{0}" height="{1}")"
        R"( role="img" aria-labelledby="t d">)"
        "\n",
        kWidth, kHeight);
    out_ += fmt::format("  <title id=\"t\">{}</title>\n", escaped(picture_.title));
    out_ += fmt::format("  <desc id=\"d\">{}</desc>\n", escaped(picture_.description));
    out_ += fmt::format("  <style>{}</style>\n", kStyle);
    out_ += fmt::format(R"(  <rect class="ground" x="1" y="1" width="{}" height="{}" rx="14"/>)",
                        kWidth - 2, kHeight - 2);
    out_ += '\n';
    write("title", kMargin, 37, picture_.title);
    write("subtitle", kMargin, 59, picture_.subtitle);
    write("note y", kWidth - kMargin, kBottom + 44, picture_.note);
  }

  void write(std::string_view classes, double x, double y, std::string_view text) {
    out_ += fmt::format("  <text class=\"{}\" x=\"{}\" y=\"{}\">{}</text>\n", classes,
                        coordinate(x), coordinate(y), escaped(text));
  }

  void path(std::string_view classes, const std::string& d) {
    out_ += fmt::format("  <path class=\"{}\" d=\"{}\"/>\n", classes, d);
  }

  void memoryAxisLines() {
    const Axis axis = memoryAxis(std::uint64_t(field_.most));
    for (const Axis::Tick& tick : axis.ticks) {
      const double y = field_.yOf(std::uint64_t(tick.at));
      path(tick.at > 0 ? "grid" : "base",
           fmt::format("M{} {}H{}", coordinate(kLeft), coordinate(y), coordinate(kRight)));
      write("y", kLeft - 8, y + 4, tick.text);
    }
    write("y", kLeft - 8, kTop - 8, axis.unit);
  }

  void timeAxisLine() {
    const Axis axis = picture_.in_events ? countAxis(picture_.span) : timeAxis(picture_.span);
    const double scale = (kRight - kLeft) / double(std::max<std::uint64_t>(picture_.span, 1));
    for (const Axis::Tick& tick : axis.ticks) {
      const double x = kLeft + tick.at * scale;
      path("base", fmt::format("M{} {}v4", coordinate(x), coordinate(kBottom)));
      write("x", x, kBottom + 18, tick.text);
    }
    write("note", kLeft, kBottom + 44, fmt::format("{} {}", axis.unit, picture_.time));
  }

  // Drawn twice, one over the other, so that memory that existed for only a part of a column's time
  // is paler.
  void area() {
    path("asked", field_.area(picture_.asked.curve, &Curve::Column::most));
    path("asked", field_.area(picture_.asked.curve, &Curve::Column::least));
  }

  void line(std::size_t index) {
    const Series& series = picture_.reserved[index];
    out_ += fmt::format(R"(  <path class="line s{}{}" data-policy="{}" d="{}">)", series.colour,
                        index == 0 ? " first" : "", escaped(series.key), field_.line(series.curve));
    out_ += fmt::format("<title>{}: {}</title></path>\n", escaped(series.title),
                        escaped(series.figures));
    if (series.cut_short) cross(series);
  }

  void cap() {
    if (!picture_.cap) return;
    const double y = field_.yOf(*picture_.cap);
    path("cap",
         fmt::format("M{} {}h{}", coordinate(kLeft), coordinate(y), coordinate(kRight - kLeft)));
    write("peak", kLeft + 4, y - 5, "cap " + formatBytes(*picture_.cap));
  }

  // The circles first, so that no figure is behind one.
  void peaks() {
    std::vector<Peak> peaks{peakOf(picture_.asked, "base", "")};
    for (const Series& series : picture_.reserved)
      peaks.push_back(
          peakOf(series, fmt::format("s{}", series.colour), fmt::format(" f{}", series.colour)));
    for (const Peak& peak : peaks) {
      out_ += fmt::format(
          "  <circle class=\"mark {}\" data-peak=\"{}\" cx=\"{}\" cy=\"{}\" r=\"3.5\"/>\n",
          peak.stroke, escaped(peak.key), coordinate(peak.x), coordinate(peak.y));
    }
    for (const auto& [peak, y] : stacked(std::move(peaks))) {
      const double x = std::clamp(peak.x, kLeft + kPeakWidth / 2, kRight - kPeakWidth / 2);
      write("peak x" + peak.fill, x, y, peak.figure);
    }
  }

  Peak peakOf(const Series& series, std::string stroke, std::string fill) const {
    const std::uint64_t bytes = series.curve.peak();
    return {field_.xOf(series.curve.peakColumn()) + 0.5,
            field_.yOf(bytes),
            series.key,
            std::move(stroke),
            std::move(fill),
            formatBytes(bytes)};
  }

  void cross(const Series& series) {
    const auto& columns = series.curve.columns();
    path(fmt::format("line s{}", series.colour),
         fmt::format("M{} {}m-5-5l10 10m0-10l-10 10", coordinate(field_.xOf(columns.size())),
                     coordinate(field_.yOf(columns.back().last))));
  }

  void labels() {
    std::vector<double> ends;
    for (const Series& series : picture_.reserved) ends.push_back(endOf(series));
    ends.push_back(endOf(picture_.asked));
    const std::vector<double> places = spread(ends, kLabelHeight, kTop, kBottom - 13);
    for (std::size_t i = 0; i < picture_.reserved.size(); ++i) {
      const Series& series = picture_.reserved[i];
      label(series, ends[i], places[i], fmt::format("s{}", series.colour),
            fmt::format("name f{}", series.colour));
    }
    label(picture_.asked, ends.back(), places.back(), "base", "name");
  }

  double endOf(const Series& series) const {
    return field_.yOf(series.curve.columns().back().last);
  }

  // Its two lines are above and below the middle of its place. A line leads there from the curve's
  // end, but where that is not the program's.
  void label(const Series& series, double end, double place, const std::string& stroke,
             const std::string& name) {
    if (!series.cut_short) {
      path("leader " + stroke, fmt::format("M{} {}h4L{} {}h4", coordinate(kRight), coordinate(end),
                                           coordinate(kLabelLeft - 9), coordinate(place)));
    }
    write(name, kLabelLeft, place - 3, series.title);
    write("figures", kLabelLeft, place + 13, series.figures);
  }

  const Picture& picture_;
  const Field field_;
  std::string out_;
};

}  // namespace

std::string drawn(const Picture& picture) { return Drawing(picture).text(); }

}  // namespace cistern::command

#include "tools/watch/metrics.hpp"

#include <cmath>

#include "core/text/terminal.hpp"
#include "support/catch.hpp"

using namespace hortator;
using namespace hortator::tools;

namespace {

std::string row(std::int64_t step, double time, double loss) {
  return "{\"step\":" + std::to_string(step) + ",\"time\":" + std::to_string(time) +
         ",\"loss\":" + std::to_string(loss) + "}\n";
}

/// Reads from a text, and counts what it costs.
struct Reader {
  std::string text;
  std::size_t bytes = 0;
  ReadAt at() {
    return [this](std::uint64_t from, std::size_t count) {
      auto part = text.substr(from, count);
      bytes += part.size();
      return part;
    };
  }
};

}  // namespace

TEST_CASE("rows are parsed, with NaN and infinity; other lines are skipped") {
  const auto parsed = parse_metric_row(R"({"step":3,"time":2.5,"loss":"NaN","lr":1e-3})");
  REQUIRE(parsed);
  CHECK(parsed->step == 3);
  CHECK(parsed->time == 2.5);
  CHECK(std::isnan(parsed->find("loss").value()));
  CHECK(parsed->find("lr") == 1e-3);
  CHECK_FALSE(parsed->find("absent").has_value());
  for (const char* line : {"", "{", "3", "{}", R"({"step":"x"})", R"({"step":3,"ti)"})
    CHECK_FALSE(parse_metric_row(line));
}

TEST_CASE("a long file is sampled with few reads, and the sample has the last row") {
  Reader reader;
  for (int step = 0; step < 200'000; ++step) reader.text += row(step, step, 1.0 / (step + 1));
  const auto rows = sample_rows(reader.at(), reader.text.size(), 100);
  CHECK(reader.bytes < 1'000'000);
  CHECK(rows.size() >= 100);
  CHECK(rows.front().step == 0);
  CHECK(rows.back().step == 199'999);
  for (std::size_t i = 1; i < rows.size(); ++i) CHECK(rows[i - 1].step <= rows[i].step);
  CHECK(rows[50].step > 90'000);
  CHECK(rows[50].step < 110'000);
}

TEST_CASE("a short file is read completely, without an unfinished last row") {
  Reader reader{.text = row(1, 1, 1) + row(2, 2, 1) + R"({"step":3)"};
  CHECK(sample_rows(reader.at(), reader.text.size(), 100).size() == 2);
  Reader empty;
  CHECK(sample_rows(empty.at(), 0, 100).empty());
}

TEST_CASE("a curve is thinned by averaging neighbours") {
  Curve curve;
  for (int i = 0; i < 1000; ++i) {
    curve.x.push_back(i);
    curve.y.push_back(i % 2);
  }
  const auto thin = thinned(curve, 100);
  CHECK(thin.x.size() == 100);
  CHECK(thin.y[50] == 0.5);
  CHECK(thin.x[0] == 4.5);
  CHECK(thinned(curve, 2000).x.size() == 1000);
}

TEST_CASE("the rate excludes pauses of the run") {
  std::vector<MetricRow> rows;
  for (int i = 0; i < 100; ++i) rows.push_back({.step = i, .time = 0.5 * i + (i >= 50 ? 10'000.0 : 0)});
  const auto rate = rate_of(rows, 10);
  REQUIRE(rate.y.size() >= 8);
  for (const double value : rate.y) {
    CHECK(value > 1.9);
    CHECK(value < 2.3);
  }
  CHECK(rate_of({}, 10).x.empty());
  CHECK(rate_of({{.step = 1, .time = 1}}, 10).x.empty());
}

TEST_CASE("width counts characters, not escape sequences") {
  CHECK(core::width_of("▁▂▃") == 3);
  CHECK(core::width_of("\x1b[31mred\x1b[0m") == 3);
  CHECK(core::cut("▁▂▃▄", 2) == "▁▂");
  CHECK(core::cut("ab", 5) == "ab");
  CHECK(core::one_line("a\nb\tc") == "a b c");
}

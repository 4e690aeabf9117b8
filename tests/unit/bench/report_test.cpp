#include "bench/report.hpp"

#include "support/catch.hpp"

using namespace hortator::bench;

namespace {

Result result() {
  return {.name = "step",
          .params = {{"ranks", 2}, {"device", "cpu"}},
          .reference = "bare loop",
          .timing = {.ours = {.median_s = 0.0012, .min_s = 0.001},
                     .reference = {.median_s = 0.0010, .min_s = 0.0009},
                     .ratio = 1.2,
                     .ratio_range = {.low = 1.15, .high = 1.25},
                     .runs = 20}};
}

}  // namespace

TEST_CASE("a JSON line has all fields of a comparison") {
  const auto line = nlohmann::json::parse(json_line(result()));
  CHECK(line["name"] == "step");
  CHECK(line["params"]["ranks"] == 2);
  CHECK(line["reference"] == "bare loop");
  CHECK(line["reference_median_s"] == 0.0010);
  CHECK(line["reference_min_s"] == 0.0009);
  CHECK(line["median_s"] == 0.0012);
  CHECK(line["min_s"] == 0.001);
  CHECK(line["ratio"] == 1.2);
  CHECK(line["ratio_low"] == 1.15);
  CHECK(line["ratio_high"] == 1.25);
  CHECK(line["runs"] == 20);
  CHECK(line.size() == 11);
  CHECK(json_line(result()).find('\n') == std::string::npos);
}

TEST_CASE("few runs have no range") {
  auto few = result();
  few.timing.runs = 5;
  CHECK(nlohmann::json::parse(json_line(few)).size() == 9);
  CHECK(table({few}).find("1.200  -     5\n") != std::string::npos);
}

TEST_CASE("the columns of a table are aligned") {
  CHECK(table({result()}) ==
        "name  parameters          median   min      reference  median   ratio  95 %          runs\n"
        "step  device=cpu ranks=2  1.20 ms  1.00 ms  bare loop  1.00 ms  1.200  1.150..1.250  20\n");
}

TEST_CASE("times use a suitable unit") {
  CHECK(time_text(1.234e-6) == "1.2 us");
  CHECK(time_text(0.0123) == "12.30 ms");
  CHECK(time_text(12.3) == "12.30 s");
}

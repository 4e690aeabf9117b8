#include <hortator/error.hpp>
#include <string>

#include "core/text/text.hpp"
#include "planning/machine.hpp"
#include "support/catch.hpp"

namespace hortator::planning {
namespace {

using Catch::Matchers::ContainsSubstring;

const Machine example{.name = "node",
                      .ranks_per_node = 4,
                      .memory = 1000,
                      .flops_fp32 = 1,
                      .flops_16bit = 2,
                      .within_node = {.bytes_per_second = 3, .latency = 4},
                      .between_nodes = {.bytes_per_second = 5, .latency = 6},
                      .disk_bytes_per_second = 7};

std::string with(const std::string& from, const std::string& to) {
  auto text = to_json(example);
  return text.replace(text.find(from), from.size(), to);
}

}  // namespace

TEST_CASE("a machine file is read as it was written") { CHECK(parse_machine(to_json(example), "file") == example); }

TEST_CASE("an error of a machine file names the file and the entry") {
  CHECK_THROWS_WITH(parse_machine("[]", "m.json"), ContainsSubstring("m.json: the file is not a JSON object"));
  CHECK_THROWS_WITH(parse_machine(with("\"memory\": 1000", "\"memory\": 0"), "m.json"),
                    ContainsSubstring("m.json: 'memory' is not a number above 0"));
  CHECK_THROWS_WITH(parse_machine(with("flops_fp32", "flops_fp31"), "m.json"),
                    ContainsSubstring("'flops_fp31' is not a known entry"));
  CHECK_THROWS_WITH(parse_machine(with("\"latency\": 4", "\"latency\": -1"), "m.json"),
                    ContainsSubstring("'within_node.latency' is not a number above 0"));
  for (const auto* ranks : {"0.5", "1.5", "1e300", "3000000000"}) {
    CHECK_THROWS_WITH(parse_machine(with(": 4,", text::concat(": ", ranks, ',')), "m.json"),
                      ContainsSubstring("'ranks_per_node' is not a whole number up to 1000000"));
  }
  CHECK_THROWS_WITH(parse_machine(with("\"memory\": 1000", "\"memory\": 1e30"), "m.json"),
                    ContainsSubstring("'memory' is not a whole number up to"));
}

TEST_CASE("a message takes its latency and its bytes") {
  CHECK(seconds({.bytes_per_second = 100, .latency = 0.5}, 200, 3) == 3.5);
}

}  // namespace hortator::planning

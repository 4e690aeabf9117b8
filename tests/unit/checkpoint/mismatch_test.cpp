#include "checkpoint/read/reader.hpp"

#include "support/catch.hpp"

using namespace hortator;
using checkpoint::mismatches;

TEST_CASE("all names that do not match are listed at once") {
  const formats::TensorSpec spec = {.type = at::kFloat, .shape = {2}};
  const formats::TensorSpec longer = {.type = at::kFloat, .shape = {3}};
  const formats::TensorSpec wider = {.type = at::kDouble, .shape = {2}};
  CHECK(mismatches({{"a", spec}}, {{"a", spec}}).empty());
  const auto lines = mismatches({{"a", spec}, {"b", spec}, {"c", spec}, {"d", spec}},
                                {{"b", longer}, {"c", wider}, {"d", spec}, {"e", spec}});
  REQUIRE(lines.size() == 4);
  CHECK(lines[0] == "missing 'a', float32 [2]");
  CHECK(lines[1] == "unlike 'b', float32 [2] here and float32 [3] in the checkpoint");
  CHECK(lines[2] == "unlike 'c', float32 [2] here and float64 [2] in the checkpoint");
  CHECK(lines[3] == "unexpected 'e', float32 [2]");
}

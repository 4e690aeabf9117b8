#include "checkpoint/state_outline.hpp"

#include <ATen/ATen.h>

#include <limits>

#include "checkpoint/state_outline.hpp"
#include "checkpoint/write/requirements.hpp"
#include "support/catch.hpp"

using namespace hortator;
using checkpoint::first_difference;
using checkpoint::outline_of;

namespace {
StateDict state() {
  StateDict made;
  made.put("a/weight", at::zeros({2, 3}, at::kHalf));
  made.put("a/scalar", at::scalar_tensor(1));
  made.put("count", std::numeric_limits<std::int64_t>::min());
  made.put("nan", std::numeric_limits<double>::quiet_NaN());
  made.put("text", std::string("two\0parts", 9));
  made.put("empty", "");
  return made;
}

std::string storable(const std::string& name, const at::Tensor& tensor) {
  StateDict made;
  made.put("fine", 1);
  made.put(name, tensor);
  try {
    checkpoint::require_storable(made);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}
}  // namespace

TEST_CASE("an outline survives packing") {
  const auto outline = outline_of(state());
  CHECK(outline.size() == 6);
  const auto back = checkpoint::unpack(checkpoint::pack(outline));
  CHECK(first_difference(outline, back).empty());
  CHECK(checkpoint::pack(back) == checkpoint::pack(outline));
  CHECK(checkpoint::unpack(checkpoint::pack(checkpoint::StateOutline())).empty());
}

TEST_CASE("the first difference is named") {
  const auto here = outline_of(state());
  auto other = state();
  other.put("count", 4);
  CHECK_THAT(first_difference(here, outline_of(other)),
             ContainsSubstring("'count' is -9223372036854775808 here and 4 there"));
  other = state();
  other.put("a/weight", at::zeros({2, 4}, at::kHalf));
  CHECK(first_difference(here, outline_of(other)) == "'a/weight' is float16 [2, 3] here and float16 [2, 4] there");
  other = state();
  other.put("a/scalar", 0.25);
  CHECK(first_difference(here, outline_of(other)) == "'a/scalar' is float32 [] here and 0.25 there");
  other = state();
  other.put("b", 1);
  CHECK(first_difference(here, outline_of(other)) == "'b' is there and not here");
  CHECK(first_difference(outline_of(other), here) == "'b' is here and not there");
  CHECK(first_difference({}, here) == "'a/scalar' is there and not here");
}

TEST_CASE("entries that files cannot hold are refused by name") {
  CHECK(storable("good.name/with spaces", at::zeros({2})).empty());
  for (const auto* name : {"/a", "a/", "a//b", "a/./b", "."}) {
    CHECK_THAT(storable(name, at::zeros({2})), ContainsSubstring(name));
  }
  CHECK_THAT(storable(std::string("a\0b", 3), at::zeros({2})), ContainsSubstring("The name"));
  CHECK_THAT(storable("s", at::zeros({2, 2}).to_sparse()), ContainsSubstring("'s' (float32 [2, 2])"));
  CHECK_THAT(storable("d", at::zeros(std::vector<std::int64_t>(33, 1))), ContainsSubstring("32 dimensions"));
  CHECK_THAT(storable("fine/below", at::zeros({2})),
             ContainsSubstring("'fine' is an entry and also the folder of 'fine/below'"));
}

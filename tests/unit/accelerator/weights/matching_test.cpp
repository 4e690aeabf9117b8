#include "weights/matching.hpp"

#include <hortator/error.hpp>
#include <map>

#include "support/catch.hpp"

using namespace hortator;
using weights::Matching;
using weights::Wanted;

namespace {

/// A source of names, shapes and types, without elements.
class DescribedSource : public weights::WeightSource {
 public:
  DescribedSource(std::vector<std::string> names, std::map<std::string, formats::TensorSpec> others = {})
      : names_(std::move(names)), others_(std::move(others)) {
    for (const auto& [name, spec] : others_) names_.push_back(name);
  }
  const std::filesystem::path& path() const override { return path_; }
  const std::vector<std::string>& names() const override { return names_; }
  formats::TensorSpec spec(const std::string& name) const override {
    const auto other = others_.find(name);
    return other == others_.end() ? formats::TensorSpec{.shape = {2}} : other->second;
  }
  void read(const std::string& /*name*/, core::Range /*elements*/, std::byte* /*to*/) const override {
    FAIL("nothing is to be read");
  }

 private:
  std::filesystem::path path_ = "the.file";
  std::vector<std::string> names_;
  std::map<std::string, formats::TensorSpec> others_;
};

std::vector<Wanted> wanted(const std::vector<std::string>& names) {
  std::vector<Wanted> all;
  for (const auto& name : names) all.push_back({.name = name, .spec = {.shape = {2}}, .first = all.size()});
  return all;
}

std::vector<std::string> loads_of(const Matching& matching) {
  std::vector<std::string> names;
  for (const auto& load : matching.loads) names.push_back(load.stored);
  return names;
}

}  // namespace

TEST_CASE("matching names are loaded in the order of the file") {
  const DescribedSource file({"c", "a", "b"});
  const auto matching = weights::match(wanted({"a", "b", "c"}), file, {});
  CHECK(loads_of(matching) == std::vector<std::string>{"c", "a", "b"});
  CHECK(matching.loads[0].wanted == 2);
  CHECK_NOTHROW(weights::require_match(matching, file, true));
  CHECK(weights::omissions(matching, file).empty());
}

TEST_CASE("all mismatches of names and shapes are listed in one error") {
  const DescribedSource file({"a", "x", "y"}, {{"big", {.shape = {3}}}, {"text", {.type = at::kLong, .shape = {2}}}});
  const auto matching = weights::match(wanted({"a", "b", "c", "big", "text"}), file, {});
  CHECK_THROWS_WITH(weights::require_match(matching, file, true),
                    ContainsSubstring("the.file") && ContainsSubstring("missing 'b', float32 [2], 'c', float32 [2]") &&
                        ContainsSubstring("unexpected 'x', 'y'") &&
                        ContainsSubstring("'big', float32 [2] in the model and float32 [3] in the file") &&
                        ContainsSubstring("'text', float32 [2] in the model and int64 [2] in the file") &&
                        ContainsSubstring("nothing was changed"));
  // Without strict, different shapes are still an error.
  CHECK_THROWS_WITH(weights::require_match(matching, file, false), ContainsSubstring("'big'"));
}

TEST_CASE("without strict, missing and unexpected tensors are skipped and reported") {
  const DescribedSource file({"a", "x"});
  const auto matching = weights::match(wanted({"a", "b"}), file, {});
  CHECK_THROWS_AS(weights::require_match(matching, file, true), Error);
  CHECK_NOTHROW(weights::require_match(matching, file, false));
  CHECK(loads_of(matching) == std::vector<std::string>{"a"});
  CHECK_THAT(weights::omissions(matching, file),
             ContainsSubstring("missing 'b'") && ContainsSubstring("unexpected 'x'"));
}

TEST_CASE("long lists of names are truncated") {
  std::vector<std::string> names;
  for (int i = 0; i < 100; ++i) names.push_back("layer" + std::to_string(i));
  const auto matching = weights::match(wanted({}), DescribedSource(names), {});
  CHECK_THAT(weights::omissions(matching, DescribedSource(names)), ContainsSubstring("'layer19' and 80 more"));
}

TEST_CASE("renamed names match, and two that become one are refused") {
  const DescribedSource file({"model.a", "model.b"});
  const auto matching = weights::match(wanted({"a", "b"}), file, {{"model", ""}});
  CHECK(loads_of(matching) == std::vector<std::string>{"model.a", "model.b"});
  CHECK_NOTHROW(weights::require_match(matching, file, true));
  const DescribedSource twice({"model.a", "a"});
  CHECK_THROWS_WITH(weights::require_match(weights::match(wanted({"a"}), twice, {{"model", ""}}), twice, false),
                    ContainsSubstring("'model.a' and 'a', which both become 'a'"));
}

TEST_CASE("the error suggests the prefix that would make names match") {
  const DescribedSource longer({"model.a.w", "model.b.w", "lm_head.w"});
  CHECK_THROWS_WITH(weights::require_match(weights::match(wanted({"a.w", "b.w"}), longer, {}), longer, true),
                    ContainsSubstring(R"(.rename = {{"model", ""}})"));
  const DescribedSource shorter({"a.w", "b.w"});
  CHECK_THROWS_WITH(
      weights::require_match(weights::match(wanted({"net.model.a.w", "net.model.b.w"}), shorter, {}), shorter, true),
      ContainsSubstring(R"(.rename = {{"", "net.model"}})"));
}

TEST_CASE("tied tensors need one of their names, and further ones are compared") {
  auto tied = wanted({"a", "b", "c"});
  tied[2].first = 0;
  const auto by_last = weights::match(tied, DescribedSource({"b", "c"}), {});
  CHECK(by_last.missing.empty());
  CHECK(loads_of(by_last) == std::vector<std::string>{"b", "c"});
  CHECK(by_last.twins.empty());
  const auto by_both = weights::match(tied, DescribedSource({"c", "b", "a"}), {});
  CHECK(loads_of(by_both) == std::vector<std::string>{"b", "a"});
  CHECK(by_both.twins.size() == 1);
  CHECK(by_both.twins[0].stored == "c");
  const auto none = weights::match(tied, DescribedSource({"b"}), {});
  CHECK(none.missing == std::vector<std::string>{"'a' (tied to 'c'), float32 [2]"});
}

TEST_CASE("floating-point types convert to each other, integers only to wider ones") {
  using weights::converts;
  CHECK(converts(at::kFloat, at::kBFloat16));
  CHECK(converts(at::kFloat8_e4m3fn, at::kDouble));
  CHECK(converts(at::kBool, at::kBool));
  CHECK(converts(at::kInt, at::kLong));
  CHECK(converts(at::kByte, at::kShort));
  CHECK_FALSE(converts(at::kLong, at::kInt));
  CHECK_FALSE(converts(at::kChar, at::kUInt16));
  CHECK_FALSE(converts(at::kByte, at::kChar));
  CHECK_FALSE(converts(at::kLong, at::kFloat));
  CHECK_FALSE(converts(at::kFloat, at::kLong));
  CHECK_FALSE(converts(at::kBool, at::kByte));
  CHECK_FALSE(converts(at::kComplexFloat, at::kFloat));
}

// The file of stored losses.
#include "curve_file.hpp"

#include <hortator/error.hpp>

#include "support/catch.hpp"

using namespace hortator;
using namespace hortator::curves;

namespace {

const Curves stored = {{"a 1", "AVX2", "one", {bits_of(1.5), bits_of(2)}, "first"},
                       {"a 1", "AVX2", "two", {bits_of(3)}, "first"},
                       {"b 1", "AVX512", "one", {bits_of(7)}, "other"}};

}  // namespace

TEST_CASE("stored losses survive the file, and damaged rows are refused with their line") {
  CHECK((parse(to_text(stored), "file") == stored));
  CHECK(bits_of(1) == "3ff0000000000000");
  const auto refuses = [](const std::string& old, const std::string& by, const char* why) {
    auto text = to_text(stored);
    text.replace(text.find(old), old.size(), by);
    CHECK_THROWS_WITH(parse(text, "file"), ContainsSubstring("file:") && ContainsSubstring(why));
  };
  refuses("kind\t", "kinds\t", "header");
  refuses("\tfirst", "", "five columns");
  refuses("\tfirst", "\t", "no reason");
  refuses(bits_of(1.5), "1.5", "16 hexadecimal digits");
  refuses("two", "one", "there twice");
  CHECK_THROWS_WITH(parse("", "file"), ContainsSubstring("header") || ContainsSubstring("empty"));
}

TEST_CASE("the first step that differs is named, and so is what is not stored") {
  CHECK(differences(stored, "a 1", {{"one", {1.5, 2}}, {"two", {3}}}).empty());
  CHECK(differences(stored, "a 1", {{"one", {1.5, 4}}, {"two", {3}}}) ==
        std::vector<std::string>{"one, step 2: 4010000000000000 (4), stored 4000000000000000 (2)"});
  CHECK(differences(stored, "a 1", {{"two", {3, 4}}}) == std::vector<std::string>{"two: 2 steps, stored 1"});
  CHECK(differences(stored, "b 1", {{"two", {3}}}) ==
        std::vector<std::string>{"two: not stored for this kind of machine"});
  CHECK(differences(stored, "a 1", {{"two", {-0.0}}}).size() == 1);
}

TEST_CASE("renewed curves replace those of their kind that differ, and others keep their reason") {
  const Curve common{.kind = "a 1", .features = "AVX2 FMA", .configuration = "", .reason = "second"};
  const auto all = renewed(stored, common, {{"one", {1.5, 2}}, {"three", {9}}});
  const Curves expected = {stored[0], {"a 1", "AVX2 FMA", "three", {bits_of(9)}, "second"}, stored[2]};
  CHECK((all == expected));
  const auto changed = renewed(stored, common, {{"one", {1.5, 3}}, {"two", {3}}});
  REQUIRE(changed.size() == 3);
  CHECK(changed[0].reason == "second");
  CHECK(changed[0].losses == std::vector<std::string>{bits_of(1.5), bits_of(3)});
  CHECK((changed[1] == stored[1]));
  CHECK((changed[2] == stored[2]));
}

#include "core/text/text.hpp"

#include "core/text/pattern.hpp"

#include "support/catch.hpp"

using namespace hortator;

TEST_CASE("concat and join print as streams do") {
  CHECK(text::concat("rank ", 3, ' ', 1.5) == "rank 3 1.5");
  CHECK(text::join(std::vector<int>{1, 2, 3}) == "1, 2, 3");
  CHECK(text::join(std::vector<int>{}, "-").empty());
}

TEST_CASE("the nearest known name is suggested, a distant one is not") {
  const std::vector<std::string> known = {"launch", "bench", "env"};
  CHECK(text::nearest("lunch", known) == "launch");
  CHECK(text::nearest("benhc", known) == "bench");
  CHECK(text::nearest("something", known).empty());
  const std::vector<std::string> others = {"job", "--mpi", "--name"};
  CHECK(text::nearest("foo", others).empty());
  CHECK(text::nearest("--mem", others).empty());
  CHECK(text::nearest("--nmae", others) == "--name");
  CHECK(text::nearest("-j", others).empty());
  CHECK(text::suggestion("lunch", known) == "did you mean 'launch'?");
  CHECK(text::suggestion("something", known) == "known are: launch, bench, env");
}

TEST_CASE("numbers are parsed whole or not at all") {
  long long value = 0;
  CHECK(text::parse_integer("42", value));
  CHECK(value == 42);
  CHECK(text::parse_integer("-1", value));
  CHECK_FALSE(text::parse_integer("", value));
  CHECK_FALSE(text::parse_integer("4x", value));
  CHECK_FALSE(text::parse_integer(" 4", value));
}

TEST_CASE("spellings of yes and no are parsed in any case, and no others") {
  for (const auto* word : {"y", "Yes", "t", "TRUE", "oN", "1"}) CHECK(text::parse_bool(word) == true);
  for (const auto* word : {"n", "No", "f", "FALSE", "oFf", "0"}) CHECK(text::parse_bool(word) == false);
  for (const auto* word : {"", " true", "2", "none", "truely", "-1"}) CHECK_FALSE(text::parse_bool(word));
}

TEST_CASE("counts have plurals, paths have names") {
  CHECK(text::count(1, "rank") == "1 rank");
  CHECK(text::count(2, "rank") == "2 ranks");
  CHECK(text::file_name("bin/train") == "train");
  CHECK(text::file_name("train") == "train");
  CHECK(text::first_line("one\ntwo\n") == "one");
  CHECK(text::first_line("one") == "one");
  CHECK(text::first_line("\n").empty());
  CHECK(text::split("a,b,,c", ',') == std::vector<std::string>{"a", "b", "", "c"});
}

TEST_CASE("a star in a pattern stands for any text, also none") {
  for (const auto* name : {"layers.0.mlp", "layers..mlp", "layers.0.mlp.mlp"})
    CHECK(text::fits_pattern(name, "layers.*.mlp"));
  for (const auto* name : {"layers.0.mlp.up", "layer.0.mlp", "layers.mlp", ""})
    CHECK(!text::fits_pattern(name, "layers.*.mlp"));
  CHECK(text::fits_pattern("head", "head"));
  CHECK(!text::fits_pattern("head.weight", "head"));
  CHECK(text::fits_pattern("", "*"));
  CHECK(text::fits_pattern("abcabc", "*abc"));
  CHECK(text::fits_pattern("aXbXc", "a*b*c"));
  CHECK(!text::fits_pattern("aXbX", "a*b*c"));
}

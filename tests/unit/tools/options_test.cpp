#include "tools/options.hpp"

#include <hortator/error.hpp>

#include "support/catch.hpp"
#include "tools/verbs.hpp"

using namespace hortator::tools;
namespace po = boost::program_options;

namespace {

Options known() {
  Options options;
  options.named.add_options()("ranks,n", po::value<int>(), "")("dry-run", "")(
      "program", po::value<std::vector<std::string>>(), "");
  options.positional.add("program", -1);
  options.ends_at_text = true;
  return options;
}

using Words = std::vector<std::string>;

}  // namespace

TEST_CASE("arguments after the first text are not parsed") {
  for (const Words& text : {Words{"-n", "4", "prog", "-n", "5", "--dry-run", "--", "x"},
                            Words{"-n4", "prog", "-n", "5", "--dry-run", "--", "x"},
                            Words{"--ranks=4", "prog", "-n", "5", "--dry-run", "--", "x"},
                            Words{"--ranks", "4", "prog", "-n", "5", "--dry-run", "--", "x"}}) {
    const auto values = parse(text, known());
    CHECK(values["ranks"].as<int>() == 4);
    CHECK(!values.contains("dry-run"));
    CHECK(values["program"].as<Words>() == Words{"prog", "-n", "5", "--dry-run", "--", "x"});
  }
  CHECK(parse({"--dry-run", "prog"}, known()).contains("dry-run"));
  CHECK(parse({"prog", ""}, known())["program"].as<Words>() == Words{"prog", ""});
}

TEST_CASE("an unknown option is reported with the nearest one") {
  CHECK_THROWS_WITH(parse({"--dry-ran", "x"}, known()),
                    ContainsSubstring("Unknown option '--dry-ran'. did you mean '--dry-run'?"));
  CHECK_THROWS_WITH(parse({"--verbose", "x"}, known()), ContainsSubstring("known are: --ranks, --dry-run"));
  CHECK_THROWS_WITH(parse({"--dry", "x"}, known()), ContainsSubstring("Unknown option '--dry'"));
  CHECK_THROWS_AS(parse({"-q"}, known()), hortator::UsageError);
}

TEST_CASE("missing values and values of the wrong type are usage errors") {
  CHECK_THROWS_AS(parse({"-n"}, known()), hortator::UsageError);
  CHECK_THROWS_AS(parse({"-n", "two", "prog"}, known()), hortator::UsageError);
  CHECK_THROWS_AS(parse({"--dry-run=yes"}, known()), hortator::UsageError);
  CHECK_THROWS_AS(parse({"word"}, Options{}), hortator::UsageError);
}

TEST_CASE("an unknown verb is reported with the nearest one") {
  CHECK(find(verbs(), "env", "verb").name == "env");
  CHECK_THROWS_WITH(find(verbs(), "lanch", "verb"), ContainsSubstring("Unknown verb 'lanch'. did you mean 'launch'?"));
  CHECK_THROWS_WITH(
      find(verbs(), "xyzzy", "verb"),
      ContainsSubstring("known are: config, launch, job, new, doctor, test, watch, plot, scale, env, checkpoint, "));
}

#include "launch/settings/settings.hpp"

#include <algorithm>
#include <hortator/error.hpp>

#include "core/environment/known_variables.hpp"
#include "launch/placement.hpp"
#include "launch/request.hpp"
#include "launch/settings/file.hpp"
#include "launch/settings/keys.hpp"
#include "launch/settings/walltime.hpp"
#include "support/catch.hpp"

using namespace hortator::launching;
using Values = std::vector<std::string>;

namespace {

Layer layer(const std::string& origin, const std::vector<std::pair<std::string, Values>>& values) {
  Layer made;
  for (const auto& [key, texts] : values) made[key] = {texts, origin};
  return made;
}

RankPlacement placement_of(const std::vector<std::pair<std::string, Values>>& values) {
  return placement(Settings({layer("x", values)}));
}

}  // namespace

TEST_CASE("the highest layer that has a setting wins") {
  // Each of four layers may or may not have the setting: all sixteen cases.
  for (int present = 0; present < 16; ++present) {
    std::vector<Layer> layers(4);
    int highest = -1;
    for (int i = 3; i >= 0; --i) {
      if ((present >> i & 1) == 0) continue;
      layers[static_cast<std::size_t>(i)] =
          layer("layer " + std::to_string(i), {{"mixed_precision", {i % 2 ? "bf16" : "fp16"}}});
      highest = i;
    }
    const Settings settings(layers);
    REQUIRE(settings.find("mixed_precision") != nullptr);
    CHECK(settings.find("mixed_precision")->origin == (highest < 0 ? "built-in" : "layer " + std::to_string(highest)));
    CHECK(settings.word("mixed_precision") == (highest < 0 ? "no" : highest % 2 ? "bf16" : "fp16"));
  }
}

TEST_CASE("an automatic value yields to lower layers, and is the default of its key where they have none") {
  const auto merged = [](const std::string& key, const Values& texts) {
    std::vector<Layer> layers;
    for (const auto& text : texts) layers.push_back(layer(text, {{key, {text}}}));
    const auto value = *Settings(layers).find(key);
    return value.values.front() + " of " + value.origin;
  };
  const auto clipping = [&](const Values& texts) { return merged("gradient_clipping", texts); };
  CHECK(clipping({"auto"}) == "1 of auto");
  CHECK(clipping({"auto", "0.5"}) == "0.5 of 0.5");
  CHECK(clipping({"auto", "0"}) == "0 of 0");
  CHECK(clipping({"0.5", "auto"}) == "0.5 of 0.5");
  CHECK(merged("zero_stage", {"DEEPSPEED"}) == "2 of DEEPSPEED");
  CHECK(merged("zero_stage", {"FSDP"}) == "3 of FSDP");
  CHECK(merged("zero_stage", {"DEEPSPEED", "3"}) == "3 of 3");
  CHECK(merged("zero_stage", {"1", "FSDP"}) == "1 of 1");
  CHECK_THROWS_WITH(check_values(find_key("mixed_precision", ""), {"auto"}, "x"), ContainsSubstring("got 'auto'"));
}

TEST_CASE("lists add up from the lowest layer, and for two variables of a name the higher layer wins") {
  const Settings settings({layer("flag", {{"modules", {"cuda"}}, {"environment", {"B=3"}}}),
                           layer("site", {{"modules", {"gcc", "openmpi"}}, {"environment", {"A=1", "B=2"}}})});
  CHECK(settings.list("modules") == Values{"gcc", "openmpi", "cuda"});
  CHECK(settings.list("environment") == Values{"A=1", "B=3"});
  CHECK(settings.find("modules")->origin == "site + flag");
}

TEST_CASE("the program gets only settings that were given") {
  CHECK(Settings(std::vector<Layer>()).for_program().empty());
  CHECK(Settings({layer("x", {{"debug", {"yes"}}, {"cpu", {"off"}}, {"zero_stage", {"2"}}, {"ranks", {"4"}}})})
            .for_program() == Values{"HORTATOR_CPU=0", "HORTATOR_ZERO_STAGE=2", "HORTATOR_DEBUG=1"});
}

TEST_CASE("the explanation is a readable file with the origin of each value") {
  const Settings settings({layer("--ranks", {{"ranks", {"4"}}}),
                           layer("f:2", {{"modules", {"a b", "c"}}, {"environment", {"X=1,2", "Y=a\"b\\\n"}}})});
  CHECK_THAT(settings.explain(), ContainsSubstring("ranks: 4 ") && ContainsSubstring("# --ranks\n"));
  CHECK_THAT(settings.show(), ContainsSubstring("modules: [\"a b\", c]\n"));
  CHECK_THAT(settings.show(), ContainsSubstring("environment: {X: \"1,2\", Y: \"a\\\"b\\\\\\n\"}\n"));
}

TEST_CASE("values are checked by the type of their key, and the error names their origin") {
  const auto check = [](const std::string& key, const std::string& value) {
    check_values(find_key(key, ""), {value}, "f:3: " + key + ": ");
  };
  for (const auto* good : {"1", "4", "100000000"}) CHECK_NOTHROW(check("num_processes", good));
  for (const auto* bad : {"0", "-1", "two", "1.5", "", " 1", "100000001", "99999999999999999999"}) {
    CHECK_THROWS_WITH(check("num_processes", bad), ContainsSubstring("f:3: ") && ContainsSubstring("num_processes"));
  }
  CHECK_NOTHROW(check("gpus_per_node", "0"));
  CHECK_THROWS(check("gpus_per_node", "-1"));
  for (const auto* good : {"yes", "TRUE", "on", "0", "no"}) CHECK_NOTHROW(check("debug", good));
  CHECK_THROWS_WITH(check("debug", "maybe"), ContainsSubstring("true or false"));
  CHECK_THROWS_WITH(check("mixed_precision", "fp4"), ContainsSubstring("one of no, fp16, bf16, fp8, got 'fp4'"));
  CHECK_THROWS(check("time", "soon"));
  CHECK_NOTHROW(check("environment", "A=b=c d"));
  for (const auto* bad : {"A", "=b", "1A=b", "A B=c", "A-B=c"}) CHECK_THROWS(check("environment", bad));
  CHECK_THROWS_WITH(find_key("num_proceses", "f:3: "),
                    ContainsSubstring("f:3: unknown key 'num_proceses'; did you mean 'num_processes'?"));
}

TEST_CASE("a file's errors name the file, the line and the key") {
  CHECK(read_settings(
            {{"num_processes", 1, EntryShape::scalar, {"4"}}, {"modules", 2, EntryShape::list, {"a"}}, {"account", 3}},
            "f")
            .size() == 2);
  CHECK(read_settings({{"num_processes", 7, EntryShape::scalar, {"4"}}}, "f").at("ranks").origin == "f:7");
  CHECK_THROWS_WITH(read_settings({{"nonsense", 9, EntryShape::scalar, {"4"}}}, "f"),
                    ContainsSubstring("f:9: unknown key 'nonsense'"));
  CHECK_THROWS_WITH(read_settings({{"num_processes", 7, EntryShape::scalar, {"abc"}}}, "f"),
                    ContainsSubstring("f:7: num_processes: expected a whole number from 1, got 'abc'"));
  CHECK_THROWS_WITH(read_settings({{"debug", 2, EntryShape::list, {"1"}}}, "f"),
                    ContainsSubstring("f:2: debug has the wrong form"));
  CHECK_THROWS_WITH(read_settings({{"modules", 2, EntryShape::scalar, {"a"}}}, "f"),
                    ContainsSubstring("modules: [first, second]"));
  CHECK_THROWS_WITH(
      read_settings({{"debug", 2, EntryShape::scalar, {"1"}}, {"debug", 5, EntryShape::scalar, {"0"}}}, "f"),
      ContainsSubstring("f:5: debug is given twice"));
}

TEST_CASE("of a file with several errors all are reported") {
  try {
    read_settings({{"num_proceses", 1, EntryShape::scalar, {"4"}},
                   {"debug", 2, EntryShape::scalar, {"perhaps"}},
                   {"account", 3, EntryShape::scalar, {"a"}},
                   {"environment", 4, EntryShape::map, {"A=1", "2B=1", "3C=1"}, {5, 6, 7}},
                   {"mixed_precision", 8, EntryShape::scalar, {"fp7"}}},
                  "f");
    FAIL("nothing was thrown");
  } catch (const hortator::UsageError& error) {
    CHECK_THAT(error.what(), ContainsSubstring("f has 5 errors") && ContainsSubstring("f:1: unknown key") &&
                                 ContainsSubstring("f:2: debug: expected true or false") &&
                                 ContainsSubstring("f:6: environment") && ContainsSubstring("f:7: environment") &&
                                 ContainsSubstring("f:8: mixed_precision: expected one of no, fp16, bf16"));
  }
}

TEST_CASE("no variable of a setting is reported as misspelt") {
  for (const auto& key : keys())
    CHECK(std::ranges::count(hortator::core::known_variables(), variable_of(key).substr(9)) == 1);
}

TEST_CASE("variables of the environment are settings, and checked") {
  const auto with = [](const std::string& name, const std::string& value) {
    return from_environment([=](const char* asked) { return asked == name ? std::optional(value) : std::nullopt; });
  };
  CHECK(with("HORTATOR_RANKS", "4").at("ranks").values == Values{"4"});
  CHECK(with("HORTATOR_RANKS", "").empty());
  CHECK(with("RANKS", "4").empty());
  CHECK_THROWS_WITH(with("HORTATOR_DEBUG", "perhaps"), ContainsSubstring("HORTATOR_DEBUG: "));
}

TEST_CASE("two of ranks, nodes and ranks per node are enough, and three must agree") {
  const auto is = [](const RankPlacement& got, int ranks, std::optional<int> nodes, std::optional<int> per_node) {
    return got.ranks == ranks && got.nodes == nodes && got.ranks_per_node == per_node;
  };
  CHECK(is(placement_of({{"ranks", {"6"}}}), 6, {}, {}));
  CHECK(is(placement_of({{"ranks", {"6"}}, {"nodes", {"2"}}}), 6, 2, 3));
  CHECK(is(placement_of({{"ranks", {"7"}}, {"nodes", {"2"}}}), 7, 2, {}));
  CHECK(is(placement_of({{"ranks", {"6"}}, {"ranks_per_node", {"3"}}}), 6, 2, 3));
  CHECK(is(placement_of({{"ranks", {"2"}}, {"ranks_per_node", {"4"}}}), 2, 1, 2));
  CHECK(is(placement_of({{"nodes", {"2"}}, {"ranks_per_node", {"3"}}}), 6, 2, 3));
  CHECK(is(placement_of({{"ranks", {"6"}}, {"nodes", {"2"}}, {"ranks_per_node", {"3"}}}), 6, 2, 3));
  CHECK_THROWS_WITH(placement_of({}), ContainsSubstring("number of ranks is missing"));
  CHECK(is(placement_of({{"nodes", {"2"}}}), 2, 2, 1));
  CHECK(placement_of({{"nodes", {"2"}}}).one_for_each == "node");
  CHECK(is(placement_of({{"nodes", {"2"}}, {"gpus_per_node", {"4"}}}), 8, 2, 4));
  CHECK(placement_of({{"nodes", {"2"}}, {"gpus_per_node", {"4"}}}).one_for_each == "GPU");
  CHECK(is(placement_of({{"nodes", {"2"}}, {"gpus_per_node", {"4"}}, {"cpu", {"true"}}}), 2, 2, 1));
  CHECK(placement_of({{"nodes", {"2"}}, {"ranks", {"2"}}}).one_for_each.empty());
  CHECK_THROWS_WITH(placement_of({{"ranks", {"7"}}, {"ranks_per_node", {"3"}}}), ContainsSubstring("7 ranks (x)"));
  CHECK_THROWS_WITH(placement_of({{"ranks", {"7"}}, {"nodes", {"2"}}, {"ranks_per_node", {"3"}}}),
                    ContainsSubstring("7 ranks (x) are not 2 nodes of 3"));
  CHECK_THROWS_WITH(placement_of({{"ranks", {"1"}}, {"nodes", {"2"}}}), ContainsSubstring("too few"));
}

TEST_CASE("ranks per node without nodes are placed on the nodes at hand") {
  const Settings two_on_each({layer("x", {{"ranks_per_node", {"2"}}})});
  CHECK(placement(two_on_each).ranks == 2);
  CHECK(placement(two_on_each, 3).ranks == 6);
  CHECK(placement(two_on_each, 3).nodes == 3);
}

TEST_CASE("memory of a node and of a CPU: the highest layer decides") {
  std::vector<Layer> layers = {layer("flag", {{"mem_per_cpu", {"3G"}}}), layer("file", {{"mem", {"2T"}}})};
  settle_placement(layers);
  CHECK(layers[1].empty());
  CHECK(layers[0].contains("mem_per_cpu"));
}

TEST_CASE("a flag for the placement overrides the other numbers of a file") {
  const auto ranks = [](std::vector<Layer> layers) {
    settle_placement(layers);
    return placement(Settings(layers)).ranks;
  };
  CHECK(ranks({layer("flag", {{"ranks", {"2"}}}), layer("file", {{"nodes", {"2"}}, {"ranks_per_node", {"4"}}})}) == 2);
  CHECK(ranks({layer("flag", {{"nodes", {"3"}}, {"ranks_per_node", {"4"}}}), layer("file", {{"ranks", {"4"}}})}) == 12);
  CHECK(ranks({{}, layer("file", {{"nodes", {"2"}}, {"ranks_per_node", {"4"}}})}) == 8);
  CHECK_THROWS(ranks({layer("flag", {{"ranks", {"7"}}, {"nodes", {"2"}}, {"ranks_per_node", {"4"}}})}));
}

TEST_CASE("a request has what the settings ask for") {
  const auto request = request_of(
      Settings({layer("x", {{"ranks", {"4"}}, {"threads", {"3"}}, {"gpu_ids", {"0,2"}}, {"max_restarts", {"1"}}})}));
  CHECK(request.variables == Values{"OMP_NUM_THREADS=3", "CUDA_VISIBLE_DEVICES=0,2"});
  CHECK(request.survives_nodes);
  CHECK(request_of(Settings({layer("x", {{"ranks", {"4"}}})})).variables.empty());
  CHECK_THROWS_WITH(request_of(Settings({layer("x", {{"ranks", {"4"}}, {"gpu_ids", {"$(ls)"}}})})),
                    ContainsSubstring("--gpu-ids: expected all or comma-separated numbers, got '$(ls)'"));
  CHECK_THROWS_WITH(request_of(Settings({layer("x", {{"ranks", {"4"}}, {"cpu", {"1"}}, {"gpus_per_node", {"1"}}})})),
                    ContainsSubstring("contradict"));
  CHECK_THROWS_WITH(request_of(Settings({layer("x", {{"ranks", {"4"}}, {"gpus", {"a100:2,v100:2"}}})})),
                    ContainsSubstring("--gpus: expected one type"));
}

TEST_CASE("times are parsed in the formats of schedulers") {
  CHECK(parse_walltime("02:00:00") == 7200);
  CHECK(parse_walltime("30:00") == 1800);
  CHECK(parse_walltime("1-12:00:00") == 129600);
  for (const auto* bad : {"", "2", "1:2:3:4", "a:b", "00:00", "-1:00", "1-", "1-2", "1:-2"})
    CHECK(!parse_walltime(bad));
  CHECK(walltime(129600) == "36:00:00");
  CHECK(walltime(3725) == "01:02:05");
}

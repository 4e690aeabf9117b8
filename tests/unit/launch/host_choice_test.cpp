#include "launch/restarts/host_choice.hpp"

#include "support/catch.hpp"

using namespace hortator::launching;

namespace {

using Attempt = std::vector<HostFinding>;

/// "-n2" for each host that is left out, "+n2" for one that is kept.
std::string judged(const std::vector<Attempt>& attempts, const HostSupply& supply) {
  std::string text;
  for (const auto& host : judge_hosts(attempts, supply)) text += (host.is_left_out() ? " -" : " +") + host.name;
  return text.empty() ? text : text.substr(1);
}

const HostSupply with_spare = {.hosts = {"n1:2", "n2:2", "n3:2"}, .needed = 2, .ranks_per_host = 2};
const HostSupply without_spare = {.hosts = {"n1:2", "n2:2"}, .needed = 2, .ranks_per_host = 2};
const HostSupply alone = {.hosts = {"n2:2"}, .needed = 1, .ranks_per_host = 2};

}  // namespace

TEST_CASE("the number of attempts after which a host is left out depends on the sign and on spare hosts") {
  using enum HostSign;
  struct Row {
    std::vector<HostSign> of_attempts;  ///< of n2, one an attempt
    const char* with_spare;
    const char* without_spare;
  };
  const std::vector<Row> rows = {
      {{lost}, "-n2", "-n2"},
      {{failed}, "-n2", "+n2"},
      {{failed, failed}, "-n2", "-n2"},
      {{damaged}, "", ""},
      {{damaged, damaged}, "-n2", "+n2"},
      {{damaged, damaged, damaged, damaged}, "-n2", "+n2"},
      {{stalled}, "", ""},
      {{stalled, stalled}, "-n2", "+n2"},
      {{slow}, "", ""},
      {{slow, slow}, "-n2", "+n2"},
      {{slow, stalled}, "", ""},  // each sign counts for itself
      {{slow, stalled, slow}, "-n2", "+n2"},
      {{failed, slow}, "", ""},  // the last attempt decides whether the host is looked at
  };
  for (const auto& row : rows) {
    std::vector<Attempt> attempts;
    for (const auto sign : row.of_attempts) attempts.push_back({{.host = "n2", .sign = sign}});
    INFO("attempts: " << attempts.size() << ", last sign " << static_cast<int>(row.of_attempts.back()));
    CHECK(judged(attempts, with_spare) == row.with_spare);
    CHECK(judged(attempts, without_spare) == row.without_spare);
    CHECK(judged(attempts, alone) == (std::string(row.with_spare).empty() ? "" : "+n2"));
  }
}

TEST_CASE("the last spare host goes to the worst sign, and no host is judged twice") {
  using enum HostSign;
  const Attempt all = {{"n1", slow}, {"n2", damaged}, {"n2", failed}};
  CHECK(judged({all, all}, with_spare) == "-n2 +n1");
  const HostSupply two_spares = {.hosts = {"n1", "n2", "n3", "n4"}, .needed = 2, .ranks_per_host = 2};
  CHECK(judged({all, all}, two_spares) == "-n2 -n1");
}

TEST_CASE("hosts that are lost together leave ranks on the others, and one is always left") {
  using enum HostSign;
  CHECK(judged({{{"n1", lost}, {"n2", lost}}}, with_spare) == "-n1 -n2");
  CHECK(judged({{{"n1", lost}, {"n2", lost}}}, without_spare) == "-n1 +n2");
}

TEST_CASE("a host that failed twice stays where the mesh could not be formed without it") {
  using enum HostSign;
  const std::vector<Attempt> attempts = {{{"n2", failed}}, {{"n2", failed}}};
  auto supply = without_spare;
  for (const int together : {1, 2}) {
    supply.ranks_together = together;
    CHECK(judged(attempts, supply) == "-n2");
  }
  supply.ranks_together = 4;
  const auto found = judge_hosts(attempts, supply);
  REQUIRE(found.size() == 1);
  CHECK(found[0].kept_for == "without it there are 2 ranks, and the mesh needs a multiple of 4");
  CHECK(found[0].reason == "is suspect: it ended 2 attempts");
  supply.hosts.emplace_back("n3");
  CHECK(judged(attempts, supply) == "-n2");  // a spare keeps the number of ranks
}

TEST_CASE("hosts count by their names, with a domain or without, and unknown ones not at all") {
  using enum HostSign;
  CHECK(judged({{{"n2.site.org", failed}}}, with_spare) == "-n2.site.org");
  CHECK(judged({{{"n2.site.org", slow}}, {{"n2", slow}}}, with_spare) == "-n2");
  CHECK(judged({{{"n9", failed}}}, with_spare).empty());
  CHECK(judged({}, with_spare).empty());
  CHECK(judged({{}}, with_spare).empty());
  CHECK(judged({{{"n2", failed}}}, {}).empty());
}

TEST_CASE("what was judged says why") {
  using enum HostSign;
  const auto found = judge_hosts({{{"n2", slow}}, {{"n2", slow}, {"n1", lost}}}, without_spare);
  REQUIRE(found.size() == 2);
  CHECK(found[0].name == "n1");
  CHECK(found[0].reason == "was lost");
  CHECK(found[1].reason == "was slow in 2 attempts");
  CHECK(found[1].kept_for == "there is no other host");
  CHECK(judge_hosts({{{"n2", slow}}, {{"n2", slow}}}, without_spare)[0].kept_for == "no spare host can take its place");
}

TEST_CASE("the ranks of one model are all axes but those of the data") {
  CHECK(ranks_of_model("") == 1);
  CHECK(ranks_of_model("1 rank") == 1);
  CHECK(ranks_of_model("replicate 4") == 1);
  CHECK(ranks_of_model("replicate 2 x tensor 2") == 2);
  CHECK(ranks_of_model("replicate 2 x shard 4 x pipeline 3 x context 2 x tensor 2") == 12);
  CHECK(ranks_of_model("replicate 4 x tensor 2, experts over 2") == 4);
}

// Whether the ranks of a job compute the same bits.
#include <ATen/Parallel.h>

#include <map>
#include <set>

#include "tools/doctor/bits.hpp"
#include "unit/tools/doctor/doctor_fixture.hpp"

using namespace hortator::test;

namespace {

/// Facts of ranks on these hosts; `values`: for each rank, a character for each kernel.
BitsFacts facts_of(const std::vector<std::string>& hosts, const std::vector<std::string>& values) {
  BitsFacts facts;
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    RankBits one{.host = hosts[rank], .processor = "Processor of " + hosts[rank]};
    for (std::size_t kernel = 0; kernel < values[rank].size(); ++kernel)
      one.kernels.push_back({.kernel = "kernel" + std::to_string(kernel), .bits = {values[rank][kernel]}});
    facts.ranks.push_back(std::move(one));
  }
  return facts;
}

/// The ranks that differ in a kernel, by counting.
std::set<std::size_t> differing(const std::vector<std::string>& values, std::size_t kernel) {
  char usual = values[0][kernel];
  const auto count = [&](char bits) {
    return std::ranges::count_if(values, [&](const auto& of_rank) { return of_rank[kernel] == bits; });
  };
  for (const auto& of_rank : values)
    if (count(of_rank[kernel]) > count(usual)) usual = of_rank[kernel];
  std::set<std::size_t> ranks;
  for (std::size_t rank = 0; rank < values.size(); ++rank)
    if (values[rank][kernel] != usual) ranks.insert(rank);
  return ranks;
}

/// How a finding names one of the hosts.
std::string name_of(const std::vector<std::string>& hosts, const std::string& host,
                    const std::set<std::size_t>& ranks) {
  std::string numbers;
  std::size_t all = 0, meant = 0;
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    if (hosts[rank] != host) continue;
    ++all;
    if (!ranks.contains(rank)) continue;
    ++meant;
    numbers += (numbers.empty() ? "" : ", ") + std::to_string(rank);
  }
  return all == meant ? host : host + (meant == 1 ? " (rank " : " (ranks ") + numbers + ")";
}

/// The findings must be those that follow from the values, rank by rank.
void check(const std::vector<std::string>& hosts, const std::vector<std::string>& values) {
  auto findings = judge(facts_of(hosts, values));
  std::erase_if(findings, [](const auto& one) { return one.check == "processors"; });
  std::map<std::set<std::size_t>, std::string> expected;  // the kernels by the ranks that differ
  for (std::size_t kernel = 0; kernel < values[0].size(); ++kernel) {
    auto& kernels = expected[differing(values, kernel)];
    kernels += (kernels.empty() ? "" : ", ") + ("kernel" + std::to_string(kernel));
  }
  expected.erase(std::set<std::size_t>());
  REQUIRE(findings.size() == std::max<std::size_t>(expected.size(), 1));
  if (expected.empty()) {
    CHECK(findings.front().severity == Severity::ok);
    CHECK(findings.front().remedy.empty());
    return;
  }
  for (const auto& [ranks, kernels] : expected) {
    const auto found = std::ranges::find_if(
        findings, [&, &names = kernels](const auto& one) { return one.message.ends_with(": " + names); });
    REQUIRE(found != findings.end());
    CHECK(found->severity == Severity::warning);
    CHECK(found->ranks == static_cast<int>(ranks.size()));
    const auto than = found->message.find(" than on ");
    REQUIRE(than != std::string::npos);
    const auto on = found->message.substr(0, than), others = found->message.substr(than);
    for (const auto& host : std::set<std::string>(hosts.begin(), hosts.end())) {
      std::set<std::size_t> here, elsewhere;
      for (std::size_t rank = 0; rank < hosts.size(); ++rank)
        if (hosts[rank] == host) (ranks.contains(rank) ? here : elsewhere).insert(rank);
      CHECK((on.find(host) != std::string::npos) == !here.empty());
      CHECK((others.find(host) != std::string::npos) == !elsewhere.empty());
      if (!here.empty()) CHECK_THAT(on, ContainsSubstring(name_of(hosts, host, here)));
      if (!elsewhere.empty()) CHECK_THAT(others, ContainsSubstring(name_of(hosts, host, elsewhere)));
    }
  }
}

}  // namespace

TEST_CASE("each kernel and each host with other bits is named, for all values of up to four ranks and two kernels") {
  const std::vector<std::vector<std::string>> placements = {
      {"a"},           {"a", "a"},      {"a", "b"},           {"a", "a", "a"},      {"a", "a", "b"},
      {"a", "b", "a"}, {"a", "b", "c"}, {"a", "a", "b", "b"}, {"a", "b", "a", "b"}, {"a", "b", "c", "d"}};
  for (const auto& placement : placements) {
    std::vector<std::string> hosts;
    for (const auto& name : placement) hosts.push_back("node-" + name);
    const std::size_t values = hosts.size() * 2;  // each one of three
    std::size_t count = 1;
    for (std::size_t i = 0; i < values; ++i) count *= 3;
    for (std::size_t number = 0; number < count; ++number) {
      std::vector<std::string> of_ranks(hosts.size());
      auto left = number;
      for (std::size_t i = 0; i < values; ++i, left /= 3) of_ranks[i / 2] += static_cast<char>('x' + left % 3);
      INFO(hosts.size() << " ranks, values " << number);
      check(hosts, of_ranks);
    }
  }
}

TEST_CASE("of two nodes the first is right, and processors are named by their nodes") {
  const auto facts = facts_of({"n1", "n1", "n2", "n2"}, {"xy", "xy", "xz", "xz"});
  expect_finding(facts, "same bits", Severity::warning, "1 of 2 kernels compute other bits on n2 than on n1: kernel1",
                 "--constraint");
  Findings processors = judge(facts);
  std::erase_if(processors, [](const auto& one) { return one.check != "processors"; });
  REQUIRE(processors.size() == 2);
  CHECK(processors[0].message == "n1: Processor of n1");
  CHECK(processors[1].message == "n2: Processor of n2");
  CHECK(processors[1].severity == Severity::note);
  expect_ok(facts_of({"n1", "n2"}, {"xy", "xy"}));
  CHECK(judge(BitsFacts{}).empty());
}

TEST_CASE("a kernel that a rank does not have differs, and long lists are cut") {
  auto facts = facts_of({"n1", "n2", "n3"}, {"xy", "xy", "xy"});
  facts.ranks[1].kernels.pop_back();
  expect_finding(facts, "same bits", Severity::warning, "on n2 than on n1, n3: kernel1", "");
  const std::string many(20, 'x'), others(20, 'y');
  expect_finding(facts_of({"n1", "n2"}, {many, others}), "same bits", Severity::warning,
                 "20 of 20 kernels compute other bits on n2 than on n1: kernel0, kernel1, kernel2, kernel3, kernel4, "
                 "kernel5, kernel6, kernel7 and 12 others",
                 "");
}

TEST_CASE("the probe computes the same bits again, whatever the threads, and no kernel fails") {
  const auto threads = at::get_num_threads();
  const auto kernels = probe_kernels();
  at::set_num_threads(threads + 1);
  CHECK((probe_kernels() == kernels));
  CHECK(at::get_num_threads() == threads + 1);
  at::set_num_threads(threads);
  CHECK(kernels.size() >= 40);
  std::set<std::string> names, bits;
  for (const auto& one : kernels) {
    INFO(one.kernel << ": " << one.bits);
    CHECK(one.bits.size() == 16);
    names.insert(one.kernel);
    bits.insert(one.bits);
  }
  CHECK(names.size() == kernels.size());
  CHECK(bits.size() == kernels.size());
  CHECK(hash_of(kernels).size() == 16);
  auto other = kernels;
  other.back().bits.back() = other.back().bits.back() == '0' ? '1' : '0';
  CHECK(hash_of(other) != hash_of(kernels));
  CHECK_THAT(processor_features(), ContainsSubstring("LibTorch uses "));
}

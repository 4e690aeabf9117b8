#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/hash.hpp"
#include "core/text/text.hpp"
#include "tools/doctor/bits.hpp"

namespace hortator::tools::doctor {
namespace {

using enum Severity;

constexpr std::size_t max_listed = 8;  // of kernels, or of hosts

using Ranks = std::vector<std::size_t>;

/// "softmax float32, exp float32 and 5 others"
std::string listed(std::vector<std::string> names) {
  if (names.size() <= max_listed) return text::join(names);
  const auto left_out = names.size() - max_listed;
  names.resize(max_listed);
  return text::concat(text::join(names), " and ", left_out, " others");
}

/// What a rank has computed; empty if it has no such kernel.
std::string bits_of(const RankBits& rank, const std::string& kernel) {
  const auto found = std::ranges::find(rank.kernels, kernel, &KernelBits::kernel);
  return found == rank.kernels.end() ? std::string() : found->bits;
}

std::vector<std::string> kernels_of(const BitsFacts& facts) {
  std::vector<std::string> kernels;
  std::set<std::string> known;
  for (const auto& rank : facts.ranks) {
    for (const auto& one : rank.kernels)
      if (known.insert(one.kernel).second) kernels.push_back(one.kernel);
  }
  return kernels;
}

/// The ranks without the bits that most have.
Ranks differing_ranks(const BitsFacts& facts, const std::string& kernel) {
  std::vector<std::string> all;
  std::map<std::string, int> counts;
  for (const auto& rank : facts.ranks) ++counts[all.emplace_back(bits_of(rank, kernel))];
  const auto count_of = [&](const std::string& bits) { return counts.at(bits); };
  const auto usual = *std::ranges::max_element(all, {}, count_of);  // the first of several
  Ranks different;
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    if (all[rank] != usual) different.push_back(rank);
  return different;
}

/// The hosts of these ranks. Where only some ranks of a host are meant: "node3 (rank 5)".
std::vector<std::string> hosts_of(const BitsFacts& facts, const Ranks& ranks) {
  std::map<std::string, std::size_t> all;
  for (const auto& rank : facts.ranks) ++all[rank.host];
  std::vector<std::string> order;
  std::map<std::string, std::vector<std::string>> meant;
  for (const auto rank : ranks) {
    const auto& host = facts.ranks[rank].host;
    if (!meant.contains(host)) order.push_back(host);
    meant[host].push_back(std::to_string(rank));
  }
  for (auto& host : order) {
    const auto& numbers = meant.at(host);
    if (numbers.size() == all.at(host)) continue;
    host += text::concat(numbers.size() == 1 ? " (rank " : " (ranks ", listed(numbers), ')');
  }
  return order;
}

Ranks others_than(const BitsFacts& facts, const Ranks& ranks) {
  Ranks others;
  for (std::size_t rank = 0; rank < facts.ranks.size(); ++rank)
    if (!std::ranges::binary_search(ranks, rank)) others.push_back(rank);
  return others;
}

/// "node1: AMD EPYC 9554: AVX2 FMA; LibTorch uses AVX2"; once for each kind of processor.
Findings processors_of(const BitsFacts& facts, Severity severity) {
  std::vector<std::string> kinds;
  for (const auto& rank : facts.ranks)
    if (std::ranges::find(kinds, rank.processor) == kinds.end()) kinds.push_back(rank.processor);
  Findings findings;
  for (const auto& kind : kinds) {
    Ranks ranks;
    for (std::size_t rank = 0; rank < facts.ranks.size(); ++rank)
      if (facts.ranks[rank].processor == kind) ranks.push_back(rank);
    findings.push_back({"processors", severity, text::concat(listed(hosts_of(facts, ranks)), ": ", kind), "",
                        static_cast<int>(ranks.size())});
  }
  return findings;
}

}  // namespace

std::string hash_of(const std::vector<KernelBits>& kernels) {
  std::uint64_t hash = 0;
  for (const auto& one : kernels) {
    for (const char c : text::concat(one.kernel, '\n', one.bits, '\n'))
      hash = core::mix(hash, static_cast<unsigned char>(c));
  }
  return text::print("%016llx", static_cast<unsigned long long>(hash));
}

Findings judge(const BitsFacts& facts) {
  if (facts.ranks.empty()) return {};
  const auto kernels = kernels_of(facts);
  std::vector<std::pair<Ranks, std::vector<std::string>>> differences;  // kernels by the ranks that differ
  for (const auto& kernel : kernels) {
    auto ranks = differing_ranks(facts, kernel);
    if (ranks.empty()) continue;
    const auto known = std::ranges::find(differences, ranks, [](const auto& one) -> const Ranks& { return one.first; });
    if (known != differences.end()) {
      known->second.push_back(kernel);
    } else {
      differences.push_back({std::move(ranks), {kernel}});
    }
  }
  if (differences.empty()) {
    Findings findings = {{"same bits", ok,
                          text::concat(text::count(static_cast<int>(kernels.size()), "kernel"), " on ",
                                       text::count(static_cast<int>(facts.ranks.size()), "rank"), ", hash ",
                                       hash_of(facts.ranks.front().kernels))}};
    for (auto& processor : processors_of(facts, ok)) findings.push_back(std::move(processor));
    return findings;
  }
  Findings findings;
  for (const auto& [ranks, differing] : differences) {
    findings.push_back(
        {"same bits", warning,
         text::concat(differing.size(), " of ", text::count(static_cast<int>(kernels.size()), "kernel"),
                      " compute other bits on ", listed(hosts_of(facts, ranks)), " than on ",
                      listed(hosts_of(facts, others_than(facts, ranks))), ": ", listed(differing)),
         "ask for nodes of one kind (--constraint of Slurm), or set ATEN_CPU_CAPABILITY, ONEDNN_MAX_CPU_ISA and "
         "MKL_CBWR to what all have; otherwise the bits of a run depend on its nodes",
         static_cast<int>(ranks.size())});
  }
  for (auto& processor : processors_of(facts, note)) findings.push_back(std::move(processor));
  return findings;
}

}  // namespace hortator::tools::doctor

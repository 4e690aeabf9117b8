#include "parallel/data_parallel/replica_check.hpp"

#include <array>
#include <cstring>
#include <hortator/error.hpp>
#include <map>

#include "core/text/text.hpp"
#include "formats/tensor/tensor_ranges.hpp"
#include "mpi/collectives.hpp"

namespace hortator::parallel {
namespace {

constexpr std::size_t lanes = 4;  // independent, so that the processor works on all of them at once

constexpr std::uint64_t mix(std::uint64_t state, std::uint64_t word) {
  state = (state ^ word) * 0x9e3779b97f4a7c15ULL;
  return state ^ (state >> 29);
}

std::uint64_t hash_bytes(const std::byte* bytes, std::size_t count) {
  std::array<std::uint64_t, lanes> state = {1, 2, 3, 4};
  std::array<std::uint64_t, lanes> block = {};
  for (; count >= sizeof block; bytes += sizeof block, count -= sizeof block) {
    std::memcpy(block.data(), bytes, sizeof block);
    for (std::size_t lane = 0; lane < lanes; ++lane) state[lane] = mix(state[lane], block[lane]);
  }
  block = {};
  std::memcpy(block.data(), bytes, count);
  std::uint64_t result = count;
  for (std::size_t lane = 0; lane < lanes; ++lane) result = mix(result, mix(state[lane], block[lane]));
  return result;
}

std::vector<std::uint64_t> fingerprints_of(const std::vector<NamedParameter>& parameters) {
  std::vector<std::uint64_t> prints;
  for (const auto& parameter : parameters) prints.push_back(fingerprint(parameter.tensor));
  return prints;
}

std::vector<std::vector<std::uint64_t>> gather(const std::vector<std::uint64_t>& mine, const mpi::Communicator& host) {
  std::vector<std::uint64_t> all(mine.size() * static_cast<std::size_t>(host.size()));
  mpi::all_gather_bytes(host, mine.data(), all.data(), mine.size() * sizeof(std::uint64_t));
  std::vector<std::vector<std::uint64_t>> of_ranks;
  for (auto begin = all.begin(); begin != all.end(); begin += static_cast<std::ptrdiff_t>(mine.size()))
    of_ranks.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(mine.size()));
  return of_ranks;
}

}  // namespace

std::uint64_t fingerprint(const at::Tensor& tensor) {
  const auto here = formats::ready_to_store(tensor.detach());
  return hash_bytes(static_cast<const std::byte*>(here.const_data_ptr()), here.nbytes());
}

std::optional<Divergence> find_divergence(const std::vector<std::vector<std::uint64_t>>& fingerprints) {
  std::map<std::vector<std::uint64_t>, int> votes;
  for (const auto& prints : fingerprints) ++votes[prints];
  const auto* common = &fingerprints.front();
  for (const auto& prints : fingerprints) {
    if (votes[prints] > votes[*common]) common = &prints;
  }
  for (std::size_t rank = 0; rank < fingerprints.size(); ++rank) {
    for (std::size_t i = 0; i < common->size(); ++i) {
      if (fingerprints[rank][i] == (*common)[i]) continue;
      const bool is_outvoted = 2 * votes[*common] > static_cast<int>(fingerprints.size());
      return Divergence{.rank = static_cast<int>(rank), .parameter = i, .is_outvoted = is_outvoted};
    }
  }
  return std::nullopt;
}

void check_replicas(const std::vector<NamedParameter>& parameters, const std::string& model,
                    const mpi::Communicator& host) {
  const auto prints = fingerprints_of(parameters);
  const auto mine = hash_bytes(reinterpret_cast<const std::byte*>(prints.data()), prints.size() * sizeof prints[0]);
  if (mpi::all_reduce(host, mine, mpi::Op::min) == mpi::all_reduce(host, mine, mpi::Op::max)) return;
  const auto found = find_divergence(gather(prints, host)).value();
  throw Error({.what = text::concat("The parameter ", parameters[found.parameter].name, " of ", model,
                                    " differs from the other ranks'",
                                    found.is_outvoted ? "" : ", and no majority shows which one is right"),
               .why = "replicas that got the same gradients must be equal bit for bit",
               .hint = "look for code that changes parameters on this rank only; if there is none, suspect the node's "
                       "memory"})
      .on_rank(host.family_rank(found.rank));
}

}  // namespace hortator::parallel

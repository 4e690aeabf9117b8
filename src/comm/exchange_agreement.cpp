#include "comm/exchange_agreement.hpp"

#include <algorithm>
#include <array>
#include <hortator/error.hpp>

#include "comm/exchange_plan.hpp"
#include "mpi/agree.hpp"
#include "mpi/all_to_all.hpp"
#include "mpi/collectives.hpp"

namespace hortator::comm {
namespace {

// All ranks know that a message does not fit: throws the problem of the first rank that expects something else.
// @collective
void throw_mismatch(const mpi::Communicator& comm, const std::vector<PeerTensor>& sent,
                    const std::vector<PeerTensor>& received, const ExchangeSummary& mine) {
  std::vector<std::string> sends;
  for (int peer = 0; peer < comm.size(); ++peer) sends.push_back(describe(sent, peer));
  const auto arriving = mpi::all_to_all(comm, mine.to);
  const auto descriptions = mpi::all_to_all(comm, sends);
  mpi::all_or_none(comm, [&] {
    const auto odd = static_cast<std::size_t>(std::ranges::mismatch(arriving, mine.from).in1 - arriving.begin());
    if (odd == arriving.size()) return;
    const int peer = static_cast<int>(odd);
    throw UsageError(exchange_mismatch(comm.family_rank(peer), descriptions[odd], comm.family_rank(comm.rank()),
                                       describe(received, peer)));
  });
}

}  // namespace

void agree_on_exchange(const mpi::Communicator& comm, const std::vector<PeerTensor>& sent,
                       const std::vector<PeerTensor>& received, const std::function<void()>& check) {
  mpi::LocalOutcome outcome;
  ExchangeSummary mine;
  try {
    check();
    mine = ExchangeSummary::of(sent, received, comm.size());
  } catch (const std::exception& error) {
    outcome = mpi::LocalOutcome::of(error);
  }
  std::array<std::uint64_t, 2> sums = {mine.imbalance(comm.rank()), outcome.failed ? 1U : 0U};
  mpi::all_reduce<std::uint64_t>(comm, sums, mpi::Op::sum);
  const auto [imbalance, failures] = sums;
  if (failures != 0) mpi::agree(comm, outcome);
  if (imbalance != 0) throw_mismatch(comm, sent, received, mine);
}

}  // namespace hortator::comm

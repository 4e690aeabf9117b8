#include "comm/exchange_agreement.hpp"

#include <algorithm>
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
                    const std::vector<PeerTensor>& received, const std::vector<bool>& fits) {
  std::vector<std::string> sends;
  for (int peer = 0; peer < comm.size(); ++peer) sends.push_back(describe(sent, peer));
  const auto arriving = mpi::all_to_all(comm, sends);
  mpi::all_or_none(comm, [&] {
    const auto odd = static_cast<int>(std::ranges::find(fits, false) - fits.begin());
    if (odd == comm.size()) return;
    throw UsageError(exchange_mismatch(comm.family_rank(odd), arriving[static_cast<std::size_t>(odd)],
                                       comm.family_rank(comm.rank()), describe(received, odd)));
  });
}

}  // namespace

void agree_on_exchange(const mpi::Communicator& comm, const std::vector<PeerTensor>& sent,
                       const std::vector<PeerTensor>& received, const std::function<void()>& check) {
  mpi::all_or_none(comm, check);
  const auto mine = ExchangeSummary::of(sent, received, comm.size());
  const auto arriving = mpi::all_to_all(comm, mine.to);
  std::vector<bool> fits;
  for (std::size_t peer = 0; peer < arriving.size(); ++peer) fits.push_back(arriving[peer] == mine.from[peer]);
  const bool all_fit = std::ranges::find(fits, false) == fits.end();
  if (mpi::all_reduce(comm, all_fit ? 1 : 0, MPI_MIN) == 0) throw_mismatch(comm, sent, received, fits);
}

}  // namespace hortator::comm

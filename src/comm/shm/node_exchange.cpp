#include "comm/shm/node_exchange.hpp"

#include <hortator/error.hpp>
#include <memory>
#include <utility>

#include "comm/exchange_agreement.hpp"
#include "comm/mpi/mpi_communicator.hpp"
#include "comm/mpi/mpi_exchange.hpp"
#include "mpi/collectives.hpp"

namespace hortator::comm {
namespace {

using Tensors = std::vector<PeerTensor>;

// The first rank of the node that sends something else than its peer expects, and this peer. Each rank passes its
// summary on in shared memory, where a rank that leaves does not keep the others waiting. @collective
std::optional<std::pair<int, int>> find_odd_pair(NodeTeam& team, const ExchangeSummary& mine) {
  const auto ranks = static_cast<std::size_t>(team.size());
  auto row = mine.to;
  row.insert(row.end(), mine.from.begin(), mine.from.end());
  std::vector<std::uint64_t> rows(row.size() * ranks);
  team.gather_staged(reinterpret_cast<std::byte*>(rows.data()), reinterpret_cast<const std::byte*>(row.data()),
                     row.size() * sizeof(std::uint64_t));
  for (std::size_t from = 0; from < ranks; ++from) {
    for (std::size_t to = 0; to < ranks; ++to) {
      if (rows[from * 2 * ranks + to] != rows[(to * 2 + 1) * ranks + from]) return std::pair<int, int>(from, to);
    }
  }
  return std::nullopt;
}

// @collective
std::optional<NodeProblem> problem_on_node(const mpi::Communicator& comm, NodeTeam& team, const Tensors& sent,
                                           const Tensors& received) {
  const auto pair = find_odd_pair(team, ExchangeSummary::of(sent, received, team.size()));
  if (!pair) return std::nullopt;
  const auto [from, to] = *pair;
  const auto sends = mpi::broadcast(comm, describe(sent, to), from);
  const auto expects = mpi::broadcast(comm, describe(received, from), to);
  const int culprit = comm.family_rank(to);
  return NodeProblem{culprit, exchange_mismatch(comm.family_rank(from), sends, culprit, expects)};
}

// @collective
std::optional<NodeProblem> problem_over_nodes(const mpi::Communicator& comm, const Tensors& sent,
                                              const Tensors& received) {
  try {
    agree_on_exchange(comm, sent, received, [] {});
    return std::nullopt;
  } catch (const UsageError& error) {
    return NodeProblem{error.rank().value_or(0), {.what = error.what()}};
  }
}

}  // namespace

std::optional<NodeProblem> exchange_over_nodes(const mpi::Communicator& comm, NodeTeam& team, const Tensors& sent,
                                               const Tensors& received) {
  auto problem =
      team.has_one_node() ? problem_on_node(comm, team, sent, received) : problem_over_nodes(comm, sent, received);
  if (problem) return problem;
  deliver_own(sent, received, comm.rank());
  const auto buffers = std::make_shared<const PeerBuffers>(sent, received, comm.size(), comm.rank());
  std::vector<bool> is_near(static_cast<std::size_t>(comm.size()));
  std::vector<PeerBuffers::Bytes> to;
  std::vector<PeerBuffers::Bytes> from;
  for (int local = 0; local < team.size(); ++local) {
    const int peer = team.board().global_rank(local);
    is_near[static_cast<std::size_t>(peer)] = true;
    to.push_back(buffers->to(peer));
    from.push_back(buffers->from(peer));
  }
  MpiExchange far(comm, buffers, MpiCommunicator::default_piece,
                  [&](int peer) { return !is_near[static_cast<std::size_t>(peer)]; });
  team.exchange_staged(to, from);
  far.wait();
  return std::nullopt;
}

}  // namespace hortator::comm

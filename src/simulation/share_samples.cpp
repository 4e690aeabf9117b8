#include "simulation/share_samples.hpp"

#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cstring>
#include <hortator/error.hpp>
#include <string>
#include <vector>

#include "core/text/text.hpp"
#include "mpi/all_to_all.hpp"
#include "mpi/collectives.hpp"
#include "simulation/calls/local_outcome.hpp"
#include "simulation/samples/sample_moves.hpp"

namespace hortator::simulation {
namespace {

using Layout = std::vector<std::int64_t>;

/// What each rank does in a move.
struct Party {
  std::int64_t count = 0;  ///< samples that it gives
  bool takes = false;
  bool takes_part = false;
  std::int64_t moves = 0;  ///< so far
};

void require_movable(const RunBuffer* from, const RunBuffer* to) {
  if (from != nullptr && from == to)
    throw UsageError({.what = "A buffer cannot give samples to itself", .hint = "pass two buffers, or one of them"});
  if (to != nullptr && to->samples().settings().choice == SampleChoice::priority) {
    throw UsageError({.what = "A buffer of type priority cannot take samples of other ranks",
                      .why = "samples move without their priorities",
                      .hint = "let it be a ring or a reservoir; the buffer that gives them may be of type priority"});
  }
}

Party party_of(const RunBuffer* from, const RunBuffer* to) {
  require_movable(from, to);
  Party party{.takes = to != nullptr, .takes_part = from != nullptr || to != nullptr};
  if (from != nullptr) party.count = from->samples().count();
  if (party.takes_part) party.moves = (from != nullptr ? from : to)->samples().moves();
  if (from != nullptr && to != nullptr && to->samples().moves() != party.moves) {
    throw UsageError({.what = text::concat("The buffer to give has moved samples ", party.moves,
                                           " times, the one to take ", to->samples().moves()),
                      .hint = "give one buffer's samples to one other, in each call"});
  }
  return party;
}

void require_same_moves(const mpi::Communicator& comm, const std::vector<Party>& parties) {
  const auto first = std::ranges::find_if(parties, &Party::takes_part);
  const auto other =
      std::find_if(first, parties.end(), [&](const auto& one) { return one.takes_part && one.moves != first->moves; });
  if (other == parties.end()) return;
  throw UsageError(
      {.what = text::concat("Samples have moved ", first->moves, " times on rank ",
                            comm.family_rank(static_cast<int>(first - parties.begin())), ", and ", other->moves,
                            " times on rank ", comm.family_rank(static_cast<int>(other - parties.begin()))),
       .why = "the runs that share samples were resumed from different moments",
       .hint = "save both runs after the same call of hortator_share_samples, and resume both"});
}

std::string bytes_of(const Layout& layout) {
  return {reinterpret_cast<const char*>(layout.data()), layout.size() * sizeof(std::int64_t)};
}

Layout layout_of(const std::string& bytes) {
  Layout layout(bytes.size() / sizeof(std::int64_t));
  if (!bytes.empty()) std::memcpy(layout.data(), bytes.data(), bytes.size());
  return layout;
}

/// The layout of the samples that move: the first giver's. @collective
Layout common_layout(const mpi::Communicator& comm, const std::vector<Party>& parties, const RunBuffer* from,
                     const RunBuffer* to) {
  const auto giver = std::ranges::find_if(parties, [](const auto& one) { return one.count > 0; });
  std::string mine;
  if (from != nullptr) mine = bytes_of(from->samples().store().layout());
  const auto all = mpi::broadcast(comm, std::string_view(mine), static_cast<int>(giver - parties.begin()));
  all_succeed(comm, [&] {
    const bool gives_same = from == nullptr || from->samples().count() == 0 || mine == all;
    const auto held = to == nullptr ? std::string() : bytes_of(to->samples().store().layout());
    if (gives_same && (held.empty() || held == all)) return;
    throw UsageError({.what = "Samples of different shapes or types cannot move to one buffer",
                      .hint = "use one buffer for each kind of samples"});
  });
  return layout_of(all);
}

/// Which ranks give and take how many samples.
struct Moves {
  std::vector<Party> parties;
  std::vector<std::int64_t> numbers;  ///< the position of each receiver among all of them; -1 for other ranks
  std::vector<std::int64_t> before;   ///< samples of the ranks before each
  std::int64_t receivers = 0;

  explicit Moves(std::vector<Party> all) : parties(std::move(all)) {
    std::int64_t sum = 0;
    for (const auto& party : parties) {
      numbers.push_back(party.takes ? receivers++ : -1);
      before.push_back(sum);
      sum += party.count;
    }
  }
  std::int64_t total() const { return before.back() + parties.back().count; }
  /// The rows of a rank's samples that go to another.
  std::vector<std::int64_t> rows(std::size_t from, std::size_t to) const {
    if (numbers[to] < 0) return {};
    return moving_rows(before[from], parties[from].count, receivers, numbers[to]);
  }
};

std::string packed(const TensorBatch& samples, const std::vector<std::int64_t>& rows) {
  std::string bytes;
  const auto index = at::tensor(rows, at::kLong);
  for (const auto& array : SampleStore::arrays_of(samples)) {
    const auto selected = array.index_select(0, index);
    bytes.append(static_cast<const char*>(selected.const_data_ptr()), selected.nbytes());
  }
  return bytes;
}

TensorBatch unpacked(const std::string& bytes, const Layout& layout, std::int64_t count) {
  auto batch = SampleStore::batch_of(layout, count);
  std::size_t begin = 0;
  for (const auto& array : SampleStore::arrays_of(batch)) {
    if (array.nbytes() > 0) std::memcpy(array.mutable_data_ptr(), bytes.data() + begin, array.nbytes());
    begin += array.nbytes();
  }
  return batch;
}

/// What this rank sends to each.
std::vector<std::string> outgoing(const Moves& moves, std::size_t rank, const RunBuffer* from) {
  std::vector<std::string> parts(moves.parties.size());
  if (moves.parties[rank].count == 0) return parts;
  const auto samples = from->samples().all();
  for (std::size_t to = 0; to < parts.size(); ++to) {
    if (const auto rows = moves.rows(rank, to); !rows.empty()) parts[to] = packed(samples, rows);
  }
  return parts;
}

/// What this rank has got from each.
std::vector<TensorBatch> incoming(const Moves& moves, std::size_t rank, const std::vector<std::string>& parts,
                                  const Layout& layout) {
  std::vector<TensorBatch> batches;
  for (std::size_t from = 0; from < parts.size(); ++from) {
    const auto count = static_cast<std::int64_t>(moves.rows(from, rank).size());
    if (count > 0) batches.push_back(unpacked(parts[from], layout, count));
  }
  return batches;
}

}  // namespace

std::int64_t share_samples(const mpi::Communicator& comm, RunBuffer* from, RunBuffer* to) {
  Party mine;
  all_succeed(comm, [&] { mine = party_of(from, to); });
  const Moves moves(mpi::all_gather(comm, mine));
  if (moves.receivers == 0) {
    throw UsageError({.what = "No rank takes the samples", .hint = "pass a buffer as `to` on at least one rank"});
  }
  require_same_moves(comm, moves.parties);
  if (moves.total() == 0) return 0;
  const auto layout = common_layout(comm, moves.parties, from, to);

  const auto rank = static_cast<std::size_t>(comm.rank());
  std::vector<std::string> parts;
  all_succeed(comm, [&] { parts = outgoing(moves, rank, from); });
  parts = mpi::all_to_all(comm, parts);
  SampleBuffer::CheckedSamples samples;
  all_succeed(comm, [&] {
    if (to != nullptr) samples = to->samples().check(incoming(moves, rank, parts, layout));
  });
  if (to != nullptr) to->samples().take_over(samples);
  if (from != nullptr) from->samples().hand_over();
  return moves.total();
}

}  // namespace hortator::simulation

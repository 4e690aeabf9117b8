#include "mpi/collectives.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <thread>

#include "core/text/text.hpp"
#include "mpi/native.hpp"
#include "mpi/rehearsed_world.hpp"

namespace hortator::mpi {
namespace {

// MPI's counts are int: longer data is split into several calls.
constexpr std::size_t piece_bytes = std::size_t{1} << 30;

int as_count(std::size_t bytes) {
  if (bytes > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
    throw MpiError({.what = text::concat("A host value of ", bytes, " bytes is too large for one message"),
                    .why = "MPI counts to 2^31",
                    .hint = "send large data as tensors"});
  }
  return static_cast<int>(bytes);
}

std::vector<std::string> cut(const std::string& joined, const std::vector<int>& lengths) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (const int length : lengths) {
    parts.push_back(joined.substr(begin, static_cast<std::size_t>(length)));
    begin += static_cast<std::size_t>(length);
  }
  return parts;
}

struct Layout {
  std::vector<int> offsets;
  std::size_t total = 0;
};

Layout layout_of(const std::vector<int>& lengths) {
  Layout layout{.offsets = std::vector<int>(lengths.size(), 0)};
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    layout.offsets[i] = as_count(layout.total);
    layout.total += static_cast<std::size_t>(lengths[i]);
  }
  return layout;
}

std::vector<std::string> all_gather_in_turn(const Communicator& comm, std::string_view value,
                                            const std::vector<std::uint64_t>& sizes) {
  std::vector<std::string> all;
  for (int root = 0; root < comm.size(); ++root) {
    auto& text = all.emplace_back(root == comm.rank() ? std::string(value) : std::string());
    text.resize(sizes[static_cast<std::size_t>(root)]);
    broadcast_bytes(comm, text.data(), text.size(), root);
  }
  return all;
}

// Broadcasts from one rank after the other.
std::vector<std::string> gather_in_turn(const Communicator& comm, std::string_view value, int root,
                                        const std::vector<std::uint64_t>& sizes) {
  std::vector<std::string> all;
  for (int from = 0; from < comm.size(); ++from) {
    if (comm.rank() == root) {
      all.emplace_back(from == root ? std::string(value) : std::string(sizes[static_cast<std::size_t>(from)], '\0'));
    }
    if (from == root || (comm.rank() != root && comm.rank() != from)) continue;
    const auto bytes = comm.rank() == root ? sizes[static_cast<std::size_t>(from)] : value.size();
    for (std::size_t done = 0; done < bytes; done += piece_bytes) {
      const auto piece = static_cast<int>(std::min<std::size_t>(piece_bytes, bytes - done));
      if (comm.rank() == root) {
        check(MPI_Recv(all.back().data() + done, piece, MPI_BYTE, from, 0, native(comm), MPI_STATUS_IGNORE),
              "MPI_Recv");
      } else {
        check(MPI_Send(value.data() + done, piece, MPI_BYTE, root, 0, native(comm)), "MPI_Send");
      }
    }
  }
  return all;
}

MPI_Datatype native(NumberType type) {
  switch (type) {
    case NumberType::float32:
      return MPI_FLOAT;
    case NumberType::float64:
      return MPI_DOUBLE;
    case NumberType::boolean:
      return MPI_C_BOOL;
    case NumberType::int8:
      return MPI_INT8_T;
    case NumberType::int16:
      return MPI_INT16_T;
    case NumberType::int32:
      return MPI_INT32_T;
    case NumberType::int64:
      return MPI_INT64_T;
    case NumberType::uint8:
      return MPI_UINT8_T;
    case NumberType::uint16:
      return MPI_UINT16_T;
    case NumberType::uint32:
      return MPI_UINT32_T;
    default:
      return MPI_UINT64_T;
  }
}

MPI_Op native(Op op) {
  switch (op) {
    case Op::sum:
      return MPI_SUM;
    case Op::min:
      return MPI_MIN;
    case Op::max:
      return MPI_MAX;
    case Op::logical_and:
      return MPI_LAND;
    default:
      return MPI_LOR;
  }
}

// What all ranks of a rehearsal pass.
void repeat(const Communicator& comm, const void* mine, void* all, std::size_t bytes) {
  for (int rank = 0; bytes > 0 && rank < comm.size(); ++rank)
    std::memcpy(static_cast<std::byte*>(all) + static_cast<std::size_t>(rank) * bytes, mine, bytes);
}

}  // namespace

std::string_view name_of(Op op) {
  switch (op) {
    case Op::sum:
      return "sum";
    case Op::min:
      return "min";
    case Op::max:
      return "max";
    default:
      return "another operation";
  }
}

void all_reduce_numbers(const Communicator& comm, void* numbers, std::size_t count, NumberType type, Op op) {
  check(MPI_Allreduce(MPI_IN_PLACE, numbers, static_cast<int>(count), native(type), native(op), native(comm)),
        "MPI_Allreduce");
}

void sum_before_number(const Communicator& comm, const void* number, void* sum, NumberType type) {
  check(MPI_Exscan(number, sum, 1, native(type), MPI_SUM, native(comm)), "MPI_Exscan");
}

void scatter_numbers(const Communicator& comm, const void* joined, const std::vector<int>& counts, void* mine,
                     std::size_t own, NumberType type, int root) {
  const auto offsets = layout_of(counts).offsets;
  check(MPI_Scatterv(joined, counts.data(), offsets.data(), native(type), mine, static_cast<int>(own), native(type),
                     root, native(comm)),
        "MPI_Scatterv");
}

void barrier(const Communicator& comm) {
  const CollectiveScope here(comm, {.verb = "barrier"});
  check(MPI_Barrier(native(comm)), "MPI_Barrier");
}

void keep_going(const Communicator& comm) {
  int found = 0;
  check(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, native(comm), &found, MPI_STATUS_IGNORE), "MPI_Iprobe");
}

void broadcast_bytes(const Communicator& comm, void* data, std::size_t bytes, int root) {
  const CollectiveScope here(comm, {.verb = "broadcast", .bytes = bytes, .root = root});
  if (is_rehearsed(comm)) return;
  auto* begin = static_cast<std::byte*>(data);
  for (std::size_t done = 0; done < bytes; done += piece_bytes) {
    const auto piece = std::min(piece_bytes, bytes - done);
    check(MPI_Bcast(begin + done, as_count(piece), MPI_BYTE, root, native(comm)), "MPI_Bcast");
  }
}

void all_gather_bytes(const Communicator& comm, const void* mine, void* all, std::size_t bytes) {
  const CollectiveScope here(comm, {.verb = "all_gather", .bytes = bytes});
  if (is_rehearsed(comm)) return repeat(comm, mine, all, bytes);
  const int count = as_count(bytes);
  check(MPI_Allgather(mine, count, MPI_BYTE, all, count, MPI_BYTE, native(comm)), "MPI_Allgather");
}

bool all_gather_bytes_within(const Communicator& comm, const void* mine, void* all, std::size_t bytes,
                             std::optional<std::chrono::milliseconds> patience) {
  using namespace std::chrono_literals;
  if (is_rehearsed(comm)) {
    repeat(comm, mine, all, bytes);
    return true;
  }
  const activity::Collective here(comm.membership(), "all_gather", bytes);
  const auto begin = std::chrono::steady_clock::now();
  const int count = as_count(bytes);
  // Belongs to MPI until the others have arrived.
  auto out = std::make_unique<std::byte[]>(bytes);
  auto in = std::make_unique<std::byte[]>(bytes * static_cast<std::size_t>(comm.size()));
  std::memcpy(out.get(), mine, bytes);
  Request request;
  check(MPI_Iallgather(out.get(), count, MPI_BYTE, in.get(), count, MPI_BYTE, native(comm), native(request)),
        "MPI_Iallgather");
  while (!request.is_complete()) {
    if (patience && std::chrono::steady_clock::now() - begin > *patience) {
      // Leaked: MPI cannot be asked to give it back.
      static_cast<void>(out.release());
      static_cast<void>(in.release());
      return false;
    }
    std::this_thread::sleep_for(200us);
  }
  std::memcpy(all, in.get(), bytes * static_cast<std::size_t>(comm.size()));
  return true;
}

void exchange_bytes(const Communicator& comm, const void* out, int to, void* in, int from, std::size_t bytes) {
  const activity::Collective here(comm.membership(), "exchange", bytes);
  if (is_rehearsed(comm)) {
    std::memcpy(in, out, bytes);
    return;
  }
  check(MPI_Sendrecv(out, as_count(bytes), MPI_BYTE, to, 0, in, as_count(bytes), MPI_BYTE, from, 0, native(comm),
                     MPI_STATUS_IGNORE),
        "MPI_Sendrecv");
}

std::string broadcast(const Communicator& comm, std::string_view value, int root) {
  const CollectiveScope here(comm, {.verb = "broadcast", .bytes = value.size(), .root = root, .has_same_bytes = false});
  const auto length = broadcast<std::uint64_t>(comm, value.size(), root);
  std::string result(value);
  result.resize(length);
  broadcast_bytes(comm, result.data(), length, root);
  return result;
}

std::vector<std::string> all_gather(const Communicator& comm, std::string_view value, std::size_t most) {
  const CollectiveScope here(comm, {.verb = "all_gather", .bytes = value.size(), .has_same_bytes = false});
  if (is_rehearsed(comm)) return {static_cast<std::size_t>(comm.size()), std::string(value)};
  const auto sizes = all_gather<std::uint64_t>(comm, value.size());
  if (std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0}) > most)
    return all_gather_in_turn(comm, value, sizes);
  const std::vector<int> lengths(sizes.begin(), sizes.end());
  const auto [offsets, total] = layout_of(lengths);
  std::string joined(total, '\0');
  check(MPI_Allgatherv(value.data(), as_count(value.size()), MPI_BYTE, joined.data(), lengths.data(), offsets.data(),
                       MPI_BYTE, native(comm)),
        "MPI_Allgatherv");
  return cut(joined, lengths);
}

std::vector<std::string> gather(const Communicator& comm, std::string_view value, int root, std::size_t most) {
  const CollectiveScope here(comm, {.verb = "gather", .bytes = value.size(), .root = root, .has_same_bytes = false});
  const bool at_root = comm.rank() == root;
  if (is_rehearsed(comm)) return {static_cast<std::size_t>(at_root ? comm.size() : 0), std::string(value)};
  const std::uint64_t mine = value.size();
  // The data that a rank other than the root receives must not grow with the number of ranks.
  std::vector<std::uint64_t> sizes(at_root ? static_cast<std::size_t>(comm.size()) : 0);
  check(MPI_Gather(&mine, 1, MPI_UINT64_T, sizes.data(), 1, MPI_UINT64_T, root, native(comm)), "MPI_Gather");
  if (all_reduce(comm, mine, Op::sum) > most) return gather_in_turn(comm, value, root, sizes);
  const std::vector<int> lengths(sizes.begin(), sizes.end());
  const auto [offsets, total] = layout_of(lengths);
  std::string joined(at_root ? total : 0, '\0');
  check(MPI_Gatherv(value.data(), as_count(value.size()), MPI_BYTE, joined.data(), lengths.data(), offsets.data(),
                    MPI_BYTE, root, native(comm)),
        "MPI_Gatherv");
  return at_root ? cut(joined, lengths) : std::vector<std::string>();
}

}  // namespace hortator::mpi

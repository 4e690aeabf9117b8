#include "mpi/collectives.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/text.hpp"

namespace hortator::mpi {
namespace {

// MPI counts are int: longer data goes in several calls.
constexpr std::size_t piece_bytes = std::size_t{1} << 30;

int as_count(std::size_t bytes) {
  if (bytes > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
    throw MpiError({.what = text::concat("a host value of ", bytes, " bytes is too large for one message"),
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

}  // namespace

void barrier(const Communicator& comm) {
  const activity::Collective here(comm.membership(), "barrier");
  check(MPI_Barrier(comm.get()), "MPI_Barrier");
}

void broadcast_bytes(const Communicator& comm, void* data, std::size_t bytes, int root) {
  const activity::Collective here(comm.membership(), "broadcast", bytes);
  auto* begin = static_cast<std::byte*>(data);
  for (std::size_t done = 0; done < bytes; done += piece_bytes) {
    const auto piece = std::min(piece_bytes, bytes - done);
    check(MPI_Bcast(begin + done, as_count(piece), MPI_BYTE, root, comm.get()), "MPI_Bcast");
  }
}

void all_gather_bytes(const Communicator& comm, const void* mine, void* all, std::size_t bytes) {
  const activity::Collective here(comm.membership(), "all_gather", bytes);
  const int count = as_count(bytes);
  check(MPI_Allgather(mine, count, MPI_BYTE, all, count, MPI_BYTE, comm.get()), "MPI_Allgather");
}

void exchange_bytes(const Communicator& comm, const void* out, int to, void* in, int from, std::size_t bytes) {
  const activity::Collective here(comm.membership(), "exchange", bytes);
  check(MPI_Sendrecv(out, as_count(bytes), MPI_BYTE, to, 0, in, as_count(bytes), MPI_BYTE, from, 0, comm.get(),
                     MPI_STATUS_IGNORE),
        "MPI_Sendrecv");
}

std::string broadcast(const Communicator& comm, std::string_view value, int root) {
  const auto length = broadcast<std::uint64_t>(comm, value.size(), root);
  std::string result(value);
  result.resize(length);
  broadcast_bytes(comm, result.data(), length, root);
  return result;
}

std::vector<std::string> all_gather(const Communicator& comm, std::string_view value) {
  const activity::Collective here(comm.membership(), "all_gather");
  const int mine = as_count(value.size());
  const auto lengths = all_gather<int>(comm, mine);
  const auto [offsets, total] = layout_of(lengths);
  std::string joined(total, '\0');
  check(
      MPI_Allgatherv(value.data(), mine, MPI_BYTE, joined.data(), lengths.data(), offsets.data(), MPI_BYTE, comm.get()),
      "MPI_Allgatherv");
  return cut(joined, lengths);
}

std::vector<std::string> gather(const Communicator& comm, std::string_view value, int root) {
  const activity::Collective here(comm.membership(), "gather");
  const bool at_root = comm.rank() == root;
  const int mine = as_count(value.size());
  std::vector<int> lengths(at_root ? static_cast<std::size_t>(comm.size()) : 0);
  check(MPI_Gather(&mine, 1, MPI_INT, lengths.data(), 1, MPI_INT, root, comm.get()), "MPI_Gather");
  const auto [offsets, total] = layout_of(lengths);
  std::string joined(total, '\0');
  check(MPI_Gatherv(value.data(), mine, MPI_BYTE, joined.data(), lengths.data(), offsets.data(), MPI_BYTE, root,
                    comm.get()),
        "MPI_Gatherv");
  return cut(joined, lengths);
}

}  // namespace hortator::mpi

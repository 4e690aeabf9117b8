#include "mpi/all_to_all.hpp"

#include <algorithm>
#include <cstdint>

#include "mpi/collectives.hpp"
#include "mpi/native.hpp"
#include "mpi/rehearsed_world.hpp"

namespace hortator::mpi {
namespace {

/// Bytes from and to each rank that travel in one call, one after the other in memory.
struct Round {
  std::vector<int> counts;
  std::vector<int> offsets;
  std::string bytes;

  explicit Round(const std::vector<std::size_t>& lengths) {
    int total = 0;
    for (const auto length : lengths) {
      counts.push_back(static_cast<int>(length));
      offsets.push_back(total);
      total += counts.back();
    }
    bytes.resize(static_cast<std::size_t>(total));
  }
};

std::vector<std::size_t> lengths_of(const std::vector<std::uint64_t>& sizes, std::uint64_t done, std::uint64_t most) {
  std::vector<std::size_t> lengths;
  for (const auto size : sizes) lengths.push_back(size > done ? std::min(size - done, most) : 0);
  return lengths;
}

}  // namespace

std::vector<std::uint64_t> all_to_all(const Communicator& comm, const std::vector<std::uint64_t>& numbers) {
  const CollectiveScope here(comm, {.verb = "all_to_all", .bytes = sizeof(std::uint64_t)});
  if (is_rehearsed(comm)) return numbers;
  std::vector<std::uint64_t> received(numbers.size());
  check(MPI_Alltoall(numbers.data(), 1, MPI_UINT64_T, received.data(), 1, MPI_UINT64_T, native(comm)), "MPI_Alltoall");
  return received;
}

std::vector<std::string> all_to_all(const Communicator& comm, const std::vector<std::string>& parts,
                                    std::uint64_t max_bytes_per_call) {
  const CollectiveScope here(comm, {.verb = "all_to_all", .has_same_bytes = false});
  if (is_rehearsed(comm)) return parts;
  const auto ranks = static_cast<std::size_t>(comm.size());
  std::vector<std::uint64_t> out(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) out[rank] = parts.at(rank).size();
  const auto in = all_to_all(comm, out);
  const auto longest = all_reduce(comm, *std::ranges::max_element(out), Op::max);
  const std::uint64_t most = std::max<std::uint64_t>(max_bytes_per_call / ranks, 1);  // counts of a call are int
  std::vector<std::string> received(ranks);
  for (std::uint64_t done = 0; done < longest; done += most) {
    Round sent(lengths_of(out, done, most));
    Round got(lengths_of(in, done, most));
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const auto count = static_cast<std::size_t>(sent.counts[rank]);
      if (count > 0)
        std::copy_n(parts[rank].begin() + static_cast<std::ptrdiff_t>(done), count,
                    sent.bytes.begin() + sent.offsets[rank]);
    }
    check(MPI_Alltoallv(sent.bytes.data(), sent.counts.data(), sent.offsets.data(), MPI_BYTE, got.bytes.data(),
                        got.counts.data(), got.offsets.data(), MPI_BYTE, native(comm)),
          "MPI_Alltoallv");
    for (std::size_t rank = 0; rank < ranks; ++rank)
      received[rank].append(got.bytes, static_cast<std::size_t>(got.offsets[rank]),
                            static_cast<std::size_t>(got.counts[rank]));
  }
  return received;
}

}  // namespace hortator::mpi

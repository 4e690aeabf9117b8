#include "shard/peer_arrays.hpp"

#include <ATen/ATen.h>

#include <functional>
#include <hortator/error.hpp>

#include "comm/checked_communicator.hpp"
#include "comm/mpi_communicator.hpp"
#include "comm/node_communicator.hpp"
#include "shard/storage_state.hpp"
#include "support/catch.hpp"

namespace hortator::shard {
namespace {

constexpr std::int64_t part = 1000;
constexpr std::size_t arrays_in_test = 4;

std::vector<ArraySpec> peer_specs(int ranks) {
  std::vector<ArraySpec> specs;
  for (std::size_t i = 0; i < arrays_in_test; ++i)
    specs.push_back({.name = std::string(1, static_cast<char>('a' + i)), .elements = part * ranks});
  return specs;
}

double value_of(std::size_t array, int rank) { return 10.0 * static_cast<double>(array) + rank + 1; }

/// Over each back end that ranks may have between nodes.
void with_peers(const PeerArrays::Options& options,
                const std::function<void(comm::Communicator&, PeerArrays&)>& check) {
  comm::MpiCommunicator plain(mpi::Communicator::world());
  comm::NodeCommunicator node(mpi::Communicator::world());
  for (comm::Communicator* peers :
       {static_cast<comm::Communicator*>(&plain), static_cast<comm::Communicator*>(&node)}) {
    INFO(peers->name());
    PeerArrays arrays(*peers, peer_specs(peers->size()), options);
    for (std::size_t i = 0; i < arrays_in_test; ++i) arrays.part(i).fill_(value_of(i, peers->rank()));
    check(*peers, arrays);
  }
}

bool is_absent(const at::Tensor& tensor) { return memory_of(tensor.storage()) == nullptr; }

/// What reading an array throws; empty: nothing.
std::string problem_of(const at::Tensor& array) {
  try {
    array.sum();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("An array is what the ranks have of it, in their order, and no more of them are there than fit",
          "[peer_arrays]") {
  with_peers({}, [](comm::Communicator& peers, PeerArrays& arrays) {
    for (int round = 0; round < 3; ++round) {
      for (std::size_t i = 0; i < arrays_in_test; ++i) {
        for (int rank = 0; rank < peers.size(); ++rank)
          CHECK(arrays.array(i).narrow(0, rank * part, part).eq(value_of(i, rank)).all().item<bool>());
      }
    }
    CHECK(is_absent(arrays.array(0)));
    CHECK(!is_absent(arrays.array(arrays_in_test - 1)));
    const auto bytes = static_cast<std::size_t>(part * peers.size()) * sizeof(float);
    CHECK(arrays.counters().peak_frame_bytes <= 2 * (bytes + 4096));
    CHECK(arrays.counters().fetched > arrays_in_test);
  });
}

TEST_CASE("With room for all of them, each is brought once", "[peer_arrays]") {
  with_peers({.resident_bytes = 1 << 20}, [](comm::Communicator&, PeerArrays& arrays) {
    for (int round = 0; round < 3; ++round) {
      for (std::size_t i = 0; i < arrays_in_test; ++i) arrays.array(i).sum();
    }
    CHECK(arrays.counters().fetched == arrays_in_test);
    arrays.parts_changed();
    CHECK(is_absent(arrays.array(1)));
  });
}

TEST_CASE("What ranks write to their parts others see once they are told so", "[peer_arrays]") {
  with_peers({.resident_bytes = 1 << 20}, [](comm::Communicator& peers, PeerArrays& arrays) {
    const auto last = peers.size() - 1;
    CHECK(arrays.array(2)[part * last].item<double>() == value_of(2, last));
    arrays.part(2).neg_();
    arrays.parts_changed();
    CHECK(arrays.array(2)[part * last].item<double>() == -value_of(2, last));
  });
}

TEST_CASE("Of what is written to an array each rank's own part stays", "[peer_arrays]") {
  with_peers({.resident_bytes = 1}, [](comm::Communicator& peers, PeerArrays& arrays) {
    arrays.array(0).fill_(100 + peers.rank());
    arrays.array(1).sum();  // in its place
    CHECK(is_absent(arrays.array(0)));
    for (int rank = 0; rank < peers.size(); ++rank)
      CHECK(arrays.array(0).narrow(0, rank * part, part).eq(100 + rank).all().item<bool>());
  });
}

TEST_CASE("Ranks that use different arrays are told so, all of them, and can go on", "[peer_arrays]") {
  with_peers({.first_rank = 8}, [](comm::Communicator& peers, PeerArrays& arrays) {
    if (peers.size() == 1) return;
    const bool is_last = peers.rank() == peers.size() - 1;
    const auto problem = problem_of(arrays.array(is_last ? 2 : 1));
    CHECK_THAT(problem, ContainsSubstring("in different orders") &&
                            ContainsSubstring("rank " + std::to_string(7 + peers.size()) + ": c") &&
                            ContainsSubstring(peers.size() == 2 ? "rank 8: b" : "ranks 8-"));
    arrays.begin_use();
    for (std::size_t i = 0; i < arrays_in_test; ++i)
      CHECK(arrays.array(i).sum().item<double>() > part * value_of(i, 0) - 1);
  });
}

TEST_CASE("A rank that uses an array while others are in another collective is told so, too", "[peer_arrays]") {
  comm::CheckedCommunicator peers(std::make_unique<comm::MpiCommunicator>(mpi::Communicator::world()),
                                  mpi::Communicator::world());
  comm::NodeCommunicator node(mpi::Communicator::world());
  if (peers.size() == 1) return;
  for (comm::Communicator* one : {static_cast<comm::Communicator*>(&peers), static_cast<comm::Communicator*>(&node)}) {
    PeerArrays arrays(*one, peer_specs(one->size()), {});
    auto sum = at::ones({100});
    if (one->rank() == 0) {
      CHECK_THAT(problem_of(arrays.array(0)), ContainsSubstring("different collectives"));
    } else {
      CHECK_THROWS_WITH(one->all_reduce(sum, comm::ReduceOp::sum).wait(), ContainsSubstring("different collectives"));
    }
  }
}

}  // namespace hortator::shard

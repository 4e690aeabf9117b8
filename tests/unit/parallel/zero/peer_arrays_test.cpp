#include "parallel/zero/peer_arrays.hpp"

#include <ATen/ATen.h>

#include <filesystem>
#include <hortator/error.hpp>
#include <random>
#include <span>

#include "comm/decorators/checked_communicator.hpp"
#include "interception/claimed_operators.hpp"
#include "interception/claims.hpp"
#include "parallel/zero/disk_arrays.hpp"
#include "unit/parallel/peer_arrays_fixture.hpp"

namespace hortator::paging {
namespace {

/// A store whose disk has failed.
struct Refusing final : interception::StorageProvider {
  void enter(int /*number*/, interception::Access /*access*/) override { throw Error({.what = "the disk is gone"}); }
  void leave(int /*number*/) noexcept override {}
  void hand_over(int /*number*/, interception::Content /*content*/) override {}
};

}  // namespace

TEST_CASE("An array consists of the ranks' parts, in their order, and no more of them are in memory than fit",
          "[peer_arrays]") {
  with_peers({}, [](comm::Communicator& peers, parallel::PeerArrays& arrays, const Parts&) {
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

TEST_CASE("The next array is gathered ahead, and one more of them may be in memory", "[peer_arrays]") {
  with_peers({.gathers_ahead = true}, [](comm::Communicator& peers, parallel::PeerArrays& arrays, const Parts& parts) {
    const bool is_possible = peers.traits().shares_memory && peers.size() > 1;
    for (int step = 0; step < 4; ++step) {
      const auto check_values = [&](std::size_t i) {
        for (int rank = 0; rank < peers.size(); ++rank)
          CHECK(arrays.array(i).narrow(0, rank * part, part).eq(value_of(i, rank) + step).all().item<bool>());
      };
      const auto before = arrays.counters().fetched;
      for (std::size_t i = 0; i < arrays_in_test; ++i) check_values(i);
      for (std::size_t i = arrays_in_test; i-- > 0;) check_values(i);
      // All in forward; in backward the one that had no frame any more; and none of the next step's, too early.
      if (is_possible && step >= 2) CHECK(arrays.counters().fetched - before == arrays_in_test + 1);
      for (const auto& one : parts) one.add_(1);
      arrays.parts_changed();
    }
    const auto bytes = static_cast<std::size_t>(part * peers.size()) * sizeof(float);
    CHECK(arrays.counters().peak_frame_bytes <= (is_possible ? 3 : 2) * (bytes + 4096));
    CHECK((arrays.counters().fetched_ahead > 0) == is_possible);
  });
}

TEST_CASE("An order that changes on all ranks costs gathers, and nothing else", "[peer_arrays]") {
  with_peers({.gathers_ahead = true}, [](comm::Communicator& peers, parallel::PeerArrays& arrays, const Parts&) {
    std::mt19937 random(5);
    for (int use = 0; use < 100; ++use) {
      const auto i = use < 30 ? static_cast<std::size_t>(use) % arrays_in_test : random() % arrays_in_test;
      for (int rank = 0; rank < peers.size(); ++rank)
        CHECK(arrays.array(i).narrow(0, rank * part, part).eq(value_of(i, rank)).all().item<bool>());
    }
  });
}

TEST_CASE("With memory for all of them, each is gathered once", "[peer_arrays]") {
  with_peers({.resident_bytes = 1 << 20}, [](comm::Communicator&, parallel::PeerArrays& arrays, const Parts&) {
    for (int round = 0; round < 3; ++round) {
      for (std::size_t i = 0; i < arrays_in_test; ++i) arrays.array(i).sum();
    }
    CHECK(arrays.counters().fetched == arrays_in_test);
    arrays.parts_changed();
    CHECK(is_absent(arrays.array(1)));
  });
}

TEST_CASE("Ranks see what others have written to their parts after parts_changed()", "[peer_arrays]") {
  with_peers({.resident_bytes = 1 << 20},
             [](comm::Communicator& peers, parallel::PeerArrays& arrays, const Parts& parts) {
               const auto last = peers.size() - 1;
               CHECK(arrays.array(2)[part * last].item<double>() == value_of(2, last));
               parts[2].neg_();
               arrays.parts_changed();
               CHECK(arrays.array(2)[part * last].item<double>() == -value_of(2, last));
             });
}

TEST_CASE("Of what is written to an array, each rank's own part is kept", "[peer_arrays]") {
  with_peers({.resident_bytes = 1}, [](comm::Communicator& peers, parallel::PeerArrays& arrays, const Parts&) {
    arrays.array(0).fill_(100 + peers.rank());
    arrays.array(1).sum();  // takes its memory
    CHECK(is_absent(arrays.array(0)));
    for (int rank = 0; rank < peers.size(); ++rank)
      CHECK(arrays.array(0).narrow(0, rank * part, part).eq(100 + rank).all().item<bool>());
  });
}

TEST_CASE("If ranks use different arrays, all of them throw, and can continue", "[peer_arrays]") {
  with_peers({.first_rank = 8}, [](comm::Communicator& peers, parallel::PeerArrays& arrays, const Parts&) {
    if (peers.size() == 1) return;
    for (int round = 0; round < 2; ++round) {  // so that each rank predicts the next array
      for (std::size_t i = 0; i < arrays_in_test; ++i) arrays.array(i).sum();
    }
    const bool is_last = peers.rank() == peers.size() - 1;
    const auto problem = problem_of(arrays.array(is_last ? 1 : 0));
    CHECK_THAT(problem, ContainsSubstring("in different orders") &&
                            ContainsSubstring("rank " + std::to_string(7 + peers.size()) + ": b") &&
                            ContainsSubstring(peers.size() == 2 ? "rank 8: a" : "ranks 8-"));
    // They had evicted different arrays.
    for (const std::size_t i : {2, 3, 1, 0, 2}) CHECK(arrays.array(i).sum().item<double>() > part * value_of(i, 0) - 1);
  });
}

TEST_CASE("If ranks diverge while arrays are gathered ahead, all of them throw at the next gather, and can continue",
          "[peer_arrays]") {
  with_peers({.gathers_ahead = true}, [](comm::Communicator& peers, parallel::PeerArrays& arrays, const Parts&) {
    if (peers.size() == 1) return;
    for (int round = 0; round < 2; ++round) {
      for (std::size_t i = 0; i < arrays_in_test; ++i) arrays.array(i).sum();
    }
    const bool is_last = peers.rank() == peers.size() - 1;
    std::string problem;
    for (std::size_t use = 0; problem.empty() && use < 20; ++use) {
      const auto forwards = use % arrays_in_test;
      problem = problem_of(arrays.array(is_last ? arrays_in_test - 1 - forwards : forwards));
    }
    CHECK_THAT(problem, ContainsSubstring("in different orders"));
    for (int round = 0; round < 2; ++round) {
      for (const std::size_t i : {2, 3, 1, 0, 2})
        CHECK(arrays.array(i)[part * (peers.size() - 1)].item<double>() == value_of(i, peers.size() - 1));
    }
  });
}

TEST_CASE("An array that is held while parts change is dropped when it is released, on all ranks", "[peer_arrays]") {
  with_peers({.resident_bytes = 1 << 20},
             [](comm::Communicator& peers, parallel::PeerArrays& arrays, const Parts& parts) {
               {
                 const interception::Hold held(std::span(&arrays.array(2), 1), interception::Access::read);
                 parts[2].neg_();
                 arrays.parts_changed();
                 CHECK(!is_absent(arrays.array(2)));
               }
               CHECK(is_absent(arrays.array(2)));
               CHECK(arrays.array(2)[part * peers.rank()].item<double>() == -value_of(2, peers.rank()));
             });
}

TEST_CASE("Parts in files make the same arrays", "[peer_arrays]") {
  const auto world = mpi::Communicator::world();
  const auto path = std::filesystem::absolute("peer_arrays_" + std::to_string(world.rank()));
  comm::NodeCommunicator peers(mpi::Communicator::world());
  std::vector<parallel::ArraySpec> specs;
  for (const auto& whole : peer_specs(1)) specs.push_back(whole);
  parallel::DiskArrays on_disk(specs, {.folder = path, .resident_bytes = 1});
  Parts parts;
  for (std::size_t i = 0; i < arrays_in_test; ++i) parts.push_back(on_disk.array(i));
  parallel::PeerArrays arrays(peers, peer_specs(peers.size()), parts, {.resident_bytes = 1});
  on_disk.fill([&](std::size_t i, const at::Tensor& one) { one.fill_(value_of(i, peers.rank())); });
  const auto check_values = [&] {
    for (std::size_t i = 0; i < arrays_in_test; ++i) {
      for (int rank = 0; rank < peers.size(); ++rank)
        CHECK(arrays.array(i).narrow(0, rank * part, part).eq(value_of(i, rank)).all().item<bool>());
      CHECK(is_absent(parts[i]));
    }
  };
  check_values();
  parts[1].add_(10);
  arrays.parts_changed();
  for (int rank = 0; rank < peers.size(); ++rank)
    CHECK(arrays.array(1)[part * rank].item<double>() == value_of(1, rank) + 10);
  parts[1].sub_(10);
  arrays.parts_changed();
  check_values();
}

TEST_CASE("A part that one rank cannot read is an error on all ranks, which can continue", "[peer_arrays]") {
  with_peers({.first_rank = 8}, [](comm::Communicator& peers, parallel::PeerArrays& arrays, const Parts& parts) {
    const bool is_last = peers.rank() == peers.size() - 1;
    Refusing refusing;
    if (is_last) interception::claim(parts[1].storage(), {.provider = &refusing});
    CHECK_THROWS_WITH(arrays.array(1).sum(), ContainsSubstring(is_last ? "the disk is gone"
                                                                       : "Rank " + std::to_string(7 + peers.size()) +
                                                                             " cannot read its part"));
    if (is_last) interception::disclaim(parts[1].storage());
    for (std::size_t i = 0; i < arrays_in_test; ++i)
      CHECK(arrays.array(i)[part * (peers.size() - 1)].item<double>() == value_of(i, peers.size() - 1));
  });
}

TEST_CASE("A rank that uses an array while others are in another collective throws", "[peer_arrays]") {
  comm::CheckedCommunicator peers(std::make_unique<comm::MpiCommunicator>(mpi::Communicator::world()),
                                  mpi::Communicator::world());
  comm::NodeCommunicator node(mpi::Communicator::world());
  if (peers.size() == 1) return;
  for (comm::Communicator* one : {static_cast<comm::Communicator*>(&peers), static_cast<comm::Communicator*>(&node)}) {
    parallel::PeerArrays arrays(*one, peer_specs(one->size()), parts_in_memory(one->rank()), {});
    auto sum = at::ones({100});
    if (one->rank() == 0) {
      CHECK_THAT(problem_of(arrays.array(0)), ContainsSubstring("different collectives"));
    } else {
      CHECK_THROWS_WITH(one->all_reduce(sum, comm::ReduceOp::sum).wait(), ContainsSubstring("different collectives"));
    }
  }
}

}  // namespace hortator::paging

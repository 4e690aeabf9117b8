#include "parallel/zero/peer_arrays.hpp"

#include <ATen/ATen.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <hortator/error.hpp>
#include <hortator/training/autocast.hpp>
#include <random>
#include <span>

#include "comm/decorators/checked_communicator.hpp"
#include "comm/mpi/mpi_communicator.hpp"
#include "comm/shm/communicator.hpp"
#include "paging/interception/claims.hpp"
#include "paging/interception/interception.hpp"
#include "paging/interception/storage_state.hpp"
#include "parallel/zero/disk_arrays.hpp"
#include "parallel/zero/int8_blocks.hpp"
#include "support/catch.hpp"

namespace hortator::paging {
namespace {

constexpr std::int64_t part = 1280;  // whole blocks of int8
constexpr std::size_t arrays_in_test = 4;

std::vector<parallel::ArraySpec> peer_specs(int ranks, bool is_int8 = false) {
  std::vector<parallel::ArraySpec> specs;
  for (std::size_t i = 0; i < arrays_in_test; ++i) {
    specs.push_back({.name = std::string(1, static_cast<char>('a' + i)), .elements = part * ranks, .is_int8 = is_int8});
  }
  return specs;
}

double value_of(std::size_t array, int rank) { return 10.0 * static_cast<double>(array) + rank + 1; }

using Parts = std::vector<at::Tensor>;

Parts parts_in_memory(int rank) {
  Parts parts;
  for (std::size_t i = 0; i < arrays_in_test; ++i) parts.push_back(at::full({part}, value_of(i, rank), at::kFloat));
  return parts;
}

/// Values of which int8 blocks keep none but the largest.
at::Tensor int8_part(std::size_t array, int rank) {
  return at::arange(part, at::kFloat).add(value_of(array, rank)).sin();
}

/// The values with which operators compute, of an array of int8_part().
at::Tensor rounded_array(std::size_t array, int ranks) {
  std::vector<at::Tensor> parts;
  for (int rank = 0; rank < ranks; ++rank) {
    parts.push_back(at::empty({part}));
    parallel::unpack_int8(parallel::pack_int8(int8_part(array, rank)), parts.back());
  }
  return at::cat(parts);
}

at::Tensor exact_array(std::size_t array, int ranks) {
  std::vector<at::Tensor> parts;
  for (int rank = 0; rank < ranks; ++rank) parts.push_back(int8_part(array, rank));
  return at::cat(parts);
}

/// A copy by an operator.
at::Tensor as_used(const at::Tensor& array) { return array.detach().clone(); }

/// Runs over each back end between nodes, and as between devices, where ranks compare through the host.
void with_peers(parallel::PeerArrays::Options options,
                const std::function<void(comm::Communicator&, parallel::PeerArrays&, const Parts&)>& check,
                bool is_int8 = false) {
  const auto host = mpi::Communicator::world();
  comm::MpiCommunicator plain(mpi::Communicator::world());
  comm::NodeCommunicator node(mpi::Communicator::world());
  const auto over = [&](comm::Communicator& peers) {
    INFO(peers.name());
    const auto parts = parts_in_memory(peers.rank());
    parallel::PeerArrays arrays(peers, peer_specs(peers.size(), is_int8), parts, options);
    check(peers, arrays, parts);
  };
  over(plain);
  over(node);
  options.host = &host;
  over(plain);
}

/// with_peers(), of arrays that are gathered in int8, with different values in each part.
void with_int8_peers(const parallel::PeerArrays::Options& options,
                     const std::function<void(comm::Communicator&, parallel::PeerArrays&, const Parts&)>& check) {
  const auto with_values = [&](comm::Communicator& peers, parallel::PeerArrays& arrays, const Parts& parts) {
    for (std::size_t i = 0; i < arrays_in_test; ++i) parts[i].copy_(int8_part(i, peers.rank()));
    arrays.parts_changed();
    check(peers, arrays, parts);
  };
  with_peers(options, with_values, /*is_int8=*/true);
}

bool is_absent(const at::Tensor& tensor) { return memory_of(tensor.storage()) == nullptr; }

/// A store whose disk has failed.
struct Refusing final : StorageProvider {
  void enter(int /*number*/, Access /*access*/) override { throw Error({.what = "the disk is gone"}); }
  void leave(int /*number*/) noexcept override {}
  void hand_over(int /*number*/, Content /*content*/) override {}
};

/// The error of reading an array; empty if there is none.
std::string problem_of(const at::Tensor& array) {
  try {
    array.sum();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

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

TEST_CASE("Operators that cast an array get it rounded, and all others whole", "[peer_arrays]") {
  constexpr double fraction = 1.0 / 1024;  // bf16 has none of it
  const auto is_rounded = [](double value) { return value == std::floor(value); };
  with_peers({.resident_bytes = 1, .casts = true},
             [&](comm::Communicator& peers, parallel::PeerArrays& arrays, const Parts& parts) {
               for (const auto& one : parts) one.add_(fraction);
               arrays.parts_changed();
               const auto identity = at::eye(10);
               // The largest element of the array, as an operator that casts it sees it.
               const auto cast = [&] {
                 const Autocast autocast(c10::kCPU, at::kBFloat16);
                 return at::mm(arrays.array(1).view({-1, 10}), identity).max().item<double>();
               };
               const auto whole = [&] { return arrays.array(1).max().item<double>(); };
               CHECK(is_rounded(cast()));
               CHECK(cast() == value_of(1, peers.size() - 1));
               CHECK(arrays.counters().fetched_cast == 2);
               CHECK(whole() == value_of(1, peers.size() - 1) + fraction);
               CHECK(whole() == value_of(1, peers.size() - 1) + fraction);
               CHECK(arrays.counters().fetched_cast == 2);
               CHECK(cast() == value_of(1, peers.size() - 1));  // still fetched whole
               CHECK(arrays.counters().fetched_cast == 2);
               CHECK(arrays.counters().fetched_again == 0);
             });
}

TEST_CASE("A rounded array that an operator needs whole is gathered again, in the middle of another use",
          "[peer_arrays]") {
  with_peers({.resident_bytes = 1 << 20, .casts = true},
             [](comm::Communicator& peers, parallel::PeerArrays& arrays, const Parts& parts) {
               const Autocast autocast(c10::kCPU, at::kBFloat16);
               for (const auto& one : parts) one.mul_(1.0009765625);
               arrays.parts_changed();
               const auto identity = at::eye(10);
               const auto rounded = at::mm(arrays.array(2).view({-1, 10}), identity);
               const auto expected = static_cast<float>(value_of(2, 0) * 1.0009765625);
               CHECK(arrays.array(2)[0].item<float>() == expected);
               CHECK(arrays.counters().fetched_again == 1);
               CHECK(at::equal(at::mm(arrays.array(2).view({-1, 10}), identity), rounded));
               CHECK(arrays.counters().fetched == 2);
               const Hold held(std::span(&arrays.array(3), 1), Access::read);
               CHECK(arrays.counters().fetched_cast == 1);
               peers.barrier();
             });
}

TEST_CASE("Ranks of which one needs an array whole while the others cast it all throw", "[peer_arrays]") {
  with_peers({.casts = true}, [](comm::Communicator& peers, parallel::PeerArrays& arrays, const Parts&) {
    if (peers.size() == 1) return;
    const Autocast autocast(c10::kCPU, at::kBFloat16, {.enabled = peers.rank() == 0});
    std::string problem;
    try {
      at::mm(arrays.array(0).view({-1, 10}), at::eye(10));
    } catch (const UsageError& error) {
      problem = error.what();
    }
    CHECK_THAT(problem, ContainsSubstring("rank 0: a in 16 bits") && ContainsSubstring("precision"));
  });
}

TEST_CASE("Operators that only read an int8 array get the same rounded values on all ranks, ahead or not",
          "[peer_arrays]") {
  for (const bool ahead : {false, true}) {
    with_int8_peers({.gathers_ahead = ahead},
                    [](comm::Communicator& peers, parallel::PeerArrays& arrays, const Parts& parts) {
                      for (int round = 0; round < 3; ++round) {
                        for (std::size_t i = 0; i < arrays_in_test; ++i)
                          CHECK(at::equal(as_used(arrays.array(i)), rounded_array(i, peers.size())));
                      }
                      const auto counters = arrays.counters();
                      CHECK(counters.fetched_rounded == counters.fetched);
                      CHECK(counters.fetched_again == 0);
                      for (std::size_t i = 0; i < arrays_in_test; ++i)
                        CHECK(at::equal(parts[i], int8_part(i, peers.rank())));
                    });
  }
}

TEST_CASE("An int8 array has exact values while it is held for them, and operators get rounded ones afterwards",
          "[peer_arrays]") {
  with_int8_peers({.resident_bytes = 1 << 20},
                  [](comm::Communicator& peers, parallel::PeerArrays& arrays, const Parts&) {
                    const auto exact = exact_array(1, peers.size());
                    const auto rounded = rounded_array(1, peers.size());
                    for (const bool is_used_before : {false, true}) {
                      arrays.parts_changed();
                      if (is_used_before) CHECK(at::equal(as_used(arrays.array(1)), rounded));
                      const auto before = arrays.counters();
                      {
                        const Hold held(std::span(&arrays.array(1), 1), Access::read_exact);
                        CHECK(at::equal(as_used(arrays.array(1)), exact));
                      }
                      const Hold again(std::span(&arrays.array(1), 1), Access::read_exact);  // is still there
                      const auto after = arrays.counters();
                      CHECK(after.fetched - before.fetched == 1);
                      CHECK(after.fetched_again - before.fetched_again == (is_used_before ? 1 : 0));
                    }
                    CHECK(at::equal(as_used(arrays.array(1)), rounded));
                    CHECK(at::equal(as_used(arrays.array(1)), rounded));
                  });
}

TEST_CASE("What is written to an int8 array leaves all other values of the parts as they were", "[peer_arrays]") {
  with_int8_peers({.resident_bytes = 1},
                  [](comm::Communicator& peers, parallel::PeerArrays& arrays, const Parts& parts) {
                    for (int rank = 0; rank < peers.size(); ++rank) arrays.array(0)[rank * part + 3].fill_(0.25);
                    arrays.array(1).sum();  // takes its memory
                    auto expected = int8_part(0, peers.rank());
                    expected[3] = 0.25;
                    CHECK(at::equal(parts[0], expected));
                    CHECK(as_used(arrays.array(0))[3].item<float>() != 0.25);  // rounded
                  });
}

TEST_CASE("What is written to an int8 array is kept when an operator reads it before its memory is taken",
          "[peer_arrays]") {
  with_int8_peers({.resident_bytes = 1 << 20},
                  [](comm::Communicator& peers, parallel::PeerArrays& arrays, const Parts& parts) {
                    arrays.array(0).neg_();
                    CHECK(at::equal(as_used(arrays.array(0)), rounded_array(0, peers.size()).neg()));
                    CHECK(at::equal(parts[0], int8_part(0, peers.rank()).neg()));
                  });
}

TEST_CASE("Ranks of which one needs exact values of an int8 array all throw, and can continue", "[peer_arrays]") {
  with_int8_peers({}, [](comm::Communicator& peers, parallel::PeerArrays& arrays, const Parts&) {
    if (peers.size() == 1) return;
    std::string problem;
    try {
      const Hold held(std::span(&arrays.array(0), 1), peers.rank() == 0 ? Access::read : Access::read_exact);
    } catch (const UsageError& error) {
      problem = error.what();
    }
    CHECK_THAT(problem, ContainsSubstring("rank 0: a in 8 bits"));
    CHECK(at::equal(as_used(arrays.array(0)), rounded_array(0, peers.size())));
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
                 const Hold held(std::span(&arrays.array(2), 1), Access::read);
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
    if (is_last) claim(parts[1].storage(), {.provider = &refusing});
    CHECK_THROWS_WITH(arrays.array(1).sum(), ContainsSubstring(is_last ? "the disk is gone"
                                                                       : "Rank " + std::to_string(7 + peers.size()) +
                                                                             " cannot read its part"));
    if (is_last) disclaim(parts[1].storage());
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

// Arrays that operators get rounded: in the type of autocast, or in int8 blocks.
#include <ATen/ATen.h>

#include <functional>
#include <hortator/error.hpp>
#include <hortator/training/autocast.hpp>
#include <span>

#include "interception/claimed_operators.hpp"
#include "interception/claims.hpp"
#include "parallel/zero/int8_blocks.hpp"
#include "unit/parallel/peer_arrays_fixture.hpp"

namespace hortator::paging {
namespace {

/// Values for which int8 blocks keep only the largest.
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

}  // namespace

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
               const interception::Hold held(std::span(&arrays.array(3), 1), interception::Access::read);
               CHECK(arrays.counters().fetched_cast == 1);
               peers.barrier();
             });
}

TEST_CASE("all ranks throw where one needs an array whole while the others cast it", "[peer_arrays]") {
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
                        const interception::Hold held(std::span(&arrays.array(1), 1), interception::Access::read_exact);
                        CHECK(at::equal(as_used(arrays.array(1)), exact));
                      }
                      const interception::Hold again(std::span(&arrays.array(1), 1),
                                                     interception::Access::read_exact);  // is still there
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

TEST_CASE("all ranks throw where one needs exact values of an int8 array, and can continue", "[peer_arrays]") {
  with_int8_peers({}, [](comm::Communicator& peers, parallel::PeerArrays& arrays, const Parts&) {
    if (peers.size() == 1) return;
    std::string problem;
    try {
      const interception::Hold held(std::span(&arrays.array(0), 1),
                                    peers.rank() == 0 ? interception::Access::read : interception::Access::read_exact);
    } catch (const UsageError& error) {
      problem = error.what();
    }
    CHECK_THAT(problem, ContainsSubstring("rank 0: a in 8 bits"));
    CHECK(at::equal(as_used(arrays.array(0)), rounded_array(0, peers.size())));
  });
}

}  // namespace hortator::paging

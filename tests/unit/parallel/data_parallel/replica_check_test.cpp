#include "parallel/data_parallel/replica_check.hpp"

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <hortator/error.hpp>

#include "support/catch.hpp"

using namespace hortator;
using Prints = std::vector<std::vector<std::uint64_t>>;

namespace {

void check_found(const Prints& prints, int rank, std::size_t parameter, bool is_outvoted = true) {
  const auto found = parallel::find_divergence(prints);
  REQUIRE(found.has_value());
  CHECK(found->rank == rank);
  CHECK(found->parameter == parameter);
  CHECK(found->is_outvoted == is_outvoted);
}

}  // namespace

TEST_CASE("the rank that differs from most is found, and its first parameter") {
  CHECK_FALSE(parallel::find_divergence({{1, 2, 3}, {1, 2, 3}, {1, 2, 3}}));
  CHECK_FALSE(parallel::find_divergence({{1, 2}}));
  check_found({{1, 2, 3}, {1, 2, 3}, {1, 9, 8}}, 2, 1);
  check_found({{9, 2, 3}, {1, 2, 3}, {1, 2, 3}}, 0, 0);
  check_found({{1, 2}, {1, 3}}, 1, 1, false);
  check_found({{1, 2}, {1, 3}, {1, 4}}, 1, 1, false);
  check_found({{1, 2}, {1, 2}, {1, 3}, {1, 3}}, 2, 1, false);
  check_found({{1, 2}, {1, 2}, {1, 2}, {1, 3}}, 3, 1);
}

TEST_CASE("the fingerprint depends on every bit, and on the order") {
  for (const std::int64_t count : {1, 2, 7, 8, 9, 33, 100}) {
    const auto values = at::arange(count, at::kInt);
    const auto print = parallel::fingerprint(values);
    CHECK(print == parallel::fingerprint(values.clone()));
    for (std::int64_t i = 0; i < count; ++i) {
      for (const int bit : {0, 13, 31}) {
        auto changed = values.clone();
        changed[i] = static_cast<int>(changed[i].item<int>() ^ static_cast<int>(1U << bit));
        CHECK(parallel::fingerprint(changed) != print);
      }
    }
    if (count > 1) CHECK(parallel::fingerprint(values.flip(0)) != print);
  }
  CHECK(parallel::fingerprint(at::zeros({3})) != parallel::fingerprint(at::zeros({4})));
  CHECK(parallel::fingerprint(at::zeros({3}).neg()) != parallel::fingerprint(at::zeros({3})));
}

TEST_CASE("replicas that differ in one bit are an error on all ranks that names rank and parameter") {
  const auto host = mpi::Communicator::world();
  std::vector<parallel::NamedParameter> parameters = {{"first", at::ones({5})}, {"second", at::ones({3, 2})}};
  CHECK_NOTHROW(parallel::check_replicas(parameters, "model 0", host));
  if (host.size() == 1) return;
  const int culprit = host.size() - 1;
  if (host.rank() == culprit) parameters[1].tensor[2][1] = 1.0000001;
  try {
    parallel::check_replicas(parameters, "model 0", host);
    CHECK(false);
  } catch (const Error& error) {
    CHECK_THAT(error.what(), ContainsSubstring("second of model 0"));
    CHECK(error.rank() == culprit);
    const bool is_tied = host.size() == 2;
    CHECK((std::string(error.what()).find("no majority") != std::string::npos) == is_tied);
  }
}

TEST_CASE("the rank that a check of some replicas names is that of all ranks") {
  const auto all = mpi::Communicator::world();
  if (all.size() < 4) return;
  const auto others = all.split(all.rank() == 0 ? 0 : 1, all.rank());
  if (all.rank() == 0) return;
  const int culprit = all.size() - 1;
  const std::vector<parallel::NamedParameter> parameters = {{"only", at::full({2}, all.rank() == culprit ? 1 : 2)}};
  try {
    parallel::check_replicas(parameters, "model 0", others);
    CHECK(false);
  } catch (const Error& error) {
    CHECK(error.rank() == culprit);
  }
}

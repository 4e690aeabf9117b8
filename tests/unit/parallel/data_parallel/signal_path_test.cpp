// Step signals travel behind the gradients, or from host to host, as for gradients on a device.
#include <hortator/error.hpp>

#include "parallel/data_parallel/gradient_reducer.hpp"
#include "support/catch.hpp"
#include "unit/parallel/reducer_fixture.hpp"

using namespace hortator;
using parallel::SignalPath;
using test::all_are;
using test::parameter;
using test::ReducerFixture;

namespace {

constexpr auto both_paths = {SignalPath::behind_gradients, SignalPath::from_host_to_host};

struct Signalling {
  explicit Signalling(SignalPath path, bool find_unused = true, parallel::StepVotes* votes = nullptr) {
    f.options = {.bucket_cap_mb = test::one_byte_buckets, .find_unused_parameters = find_unused};
    reducer.emplace(std::vector<parallel::NamedParameter>{{"always", always}, {"sometimes", sometimes}},
                    f.parallel(path, votes));
  }
  void step(bool with_sometimes) {
    for (auto* one : {&always, &sometimes}) one->mutable_grad().reset();
    auto loss = always.sum() * (f.rank + 1);
    if (with_sometimes) loss = loss + sometimes.sum();
    loss.backward();
  }

  ReducerFixture f;
  at::Tensor always = parameter({3});
  at::Tensor sometimes = parameter({7});
  std::optional<parallel::GradientReducer> reducer;
};

}  // namespace

TEST_CASE("signals: all ranks know which gradients any rank has") {
  for (const auto path : both_paths) {
    Signalling m(path);
    if (m.f.alone()) return;
    for (int i = 0; i < 3; ++i) {
      m.step(m.f.rank == m.f.size - 1);
      CHECK(all_are(m.sometimes.grad(), 1.0 / m.f.size));
      CHECK(all_are(m.always.grad(), m.f.mean_rank + 1));
      m.step(false);
      CHECK_FALSE(m.sometimes.grad().defined());
    }
  }
}

TEST_CASE("signals: a gradient that is missing on one rank throws on all, and the next pass works") {
  for (const auto path : both_paths) {
    Signalling m(path, /*find_unused=*/false);
    if (m.f.alone()) return;
    m.step(true);
    for (int i = 0; i < 2; ++i) {
      CHECK_THROWS_WITH(m.step(m.f.rank != 1), ContainsSubstring("no gradient to sometimes"));
      m.step(true);
      CHECK(all_are(m.sometimes.grad(), 1));
    }
  }
}

TEST_CASE("signals: all ranks receive one rank's vote with the gradients") {
  for (const auto path : both_paths) {
    bool wants = false;
    parallel::StepVotes votes([&] { return parallel::Ballot{.save = wants}; });
    Signalling m(path, true, &votes);
    if (m.f.alone()) return;
    m.step(true);
    CHECK_FALSE(votes.count_save(m.f.host));
    wants = m.f.rank == m.f.size - 1;
    m.step(false);
    wants = false;  // it has been sent: it must not be asked for again
    CHECK(votes.count_save(m.f.host));
  }
}

TEST_CASE("signals: from host to host, only gradients are reduced by the communicator") {
  Signalling m(SignalPath::from_host_to_host);
  if (m.f.alone()) return;
  m.step(true);
  CHECK(m.f.communicator.reduced_elements == m.always.numel() + m.sometimes.numel());
}

TEST_CASE("signals: a rank without batches takes part") {
  for (const auto path : both_paths) {
    Signalling m(path);
    if (m.f.alone()) return;
    m.step(true);
    if (m.f.rank > 0) {
      m.step(m.f.rank == 1);
      CHECK(all_are(m.sometimes.grad(), 1.0 / m.f.size));
    } else {
      for (int bucket = 0; bucket < 2; ++bucket) m.reducer->follow(parallel::UnevenInputs::Collective::reduce_bucket);
    }
    m.step(true);
    CHECK(all_are(m.sometimes.grad(), 1));
  }
}

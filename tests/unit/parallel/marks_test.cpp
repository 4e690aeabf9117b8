// What ranks tell each other beside the gradients: behind them, or from host to host, as for gradients on a device.
#include <hortator/error.hpp>

#include "parallel/data_parallel/gradient_reducer.hpp"
#include "reducer_fixture.hpp"
#include "support/catch.hpp"

using namespace hortator;
using parallel::Marks;
using test::all_are;
using test::parameter;
using test::ReducerFixture;

namespace {

constexpr auto both_ways = {Marks::behind_gradients, Marks::from_host_to_host};

struct Marked {
  explicit Marked(Marks marks, bool find_unused = true, parallel::StepVotes* votes = nullptr) {
    f.options = {.bucket_cap_mb = test::one_byte_buckets, .find_unused_parameters = find_unused};
    reducer.emplace(std::vector<parallel::NamedParameter>{{"always", always}, {"sometimes", sometimes}},
                    f.parallel(marks, votes));
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

TEST_CASE("marks: which gradients ranks have is known on all of them") {
  for (const auto way : both_ways) {
    Marked m(way);
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

TEST_CASE("marks: a gradient that one rank lacks is an error on all, and the next pass is a good one") {
  for (const auto way : both_ways) {
    Marked m(way, /*find_unused=*/false);
    if (m.f.alone()) return;
    m.step(true);
    for (int i = 0; i < 2; ++i) {
      CHECK_THROWS_WITH(m.step(m.f.rank != 1), ContainsSubstring("no gradient to sometimes on rank 1"));
      m.step(true);
      CHECK(all_are(m.sometimes.grad(), 1));
    }
  }
}

TEST_CASE("marks: what one rank votes for, all hear with the gradients") {
  for (const auto way : both_ways) {
    bool wants = false;
    parallel::StepVotes votes([&] { return parallel::Ballot{.save = wants}; });
    Marked m(way, true, &votes);
    if (m.f.alone()) return;
    m.step(true);
    CHECK_FALSE(votes.count_save(m.f.host));
    wants = m.f.rank == m.f.size - 1;
    m.step(false);
    wants = false;  // heard already: it must not be asked for again
    CHECK(votes.count_save(m.f.host));
  }
}

TEST_CASE("marks: from host to host, nothing but gradients is reduced") {
  Marked m(Marks::from_host_to_host);
  if (m.f.alone()) return;
  m.step(true);
  CHECK(m.f.communicator.reduced_elements == m.always.numel() + m.sometimes.numel());
}

TEST_CASE("marks: a rank without batches goes along") {
  for (const auto way : both_ways) {
    Marked m(way);
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

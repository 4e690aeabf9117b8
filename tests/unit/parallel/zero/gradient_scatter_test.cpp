#include "parallel/zero/gradient_scatter.hpp"

#include <c10/core/GradMode.h>

#include <hortator/error.hpp>
#include <optional>

#include "support/catch.hpp"
#include "unit/parallel/reducer_fixture.hpp"

using namespace hortator;
using test::all_are;
using test::parameter;

namespace {

/// Parameters a, b, c, ... of these sizes in arrays of at most `bytes`.
struct Scattered {
  Scattered(const std::vector<std::int64_t>& sizes, std::int64_t bytes,
            parallel::SignalPath signals = parallel::SignalPath::behind_gradients) {
    for (const auto size : sizes)
      all.push_back({.name = std::string(1, static_cast<char>('a' + all.size())), .tensor = parameter({size})});
    model.add(std::make_unique<parallel::FlatParameters>(fixture.communicator, all,
                                                         parallel::ShardLimits{.first_bytes = bytes, .bytes = bytes},
                                                         parallel::Masters::no),
              sharding.ranks);
    auto parallel = fixture.parallel(signals);
    parallel.sharding = &sharding;
    scatter.emplace(model, parallel, [this] { return paused; });
  }

  /// A backward that gives each of these `scale` times the rank plus 1, plus its own number.
  void backward(const std::vector<std::size_t>& used, double scale) {
    auto loss = at::zeros({});
    for (const auto i : used)
      loss = loss + (all[i].tensor * (scale * (fixture.rank + 1) + static_cast<double>(i))).sum();
    loss.backward();
  }
  const at::Tensor& slice_grad(std::size_t i) const { return flat().slice(i).grad(); }
  const parallel::FlatParameters& flat() const { return *model.groups().front().parameters; }
  double mean(double scale) const { return scale * (fixture.mean_rank + 1); }

  test::ReducerFixture fixture;
  parallel::Sharding sharding{.stage = 2, .ranks = {.group = fixture.communicator}, .masters = parallel::Masters::no};
  std::vector<parallel::FlatParameters::Parameter> all;
  parallel::ShardedModel model;
  std::optional<parallel::GradientScatter> scatter;
  bool paused = false;
};

}  // namespace

TEST_CASE("slices get means, parameters keep nothing, passes add up") {
  for (const std::int64_t bytes : {1, 1000, 1 << 20}) {
    Scattered s({100, 300, 7}, bytes);
    for (int pass = 1; pass <= 3; ++pass) {
      s.backward({0, 1, 2}, 2);
      for (std::size_t i = 0; i < 3; ++i) {
        CHECK(!s.all[i].tensor.grad().defined());
        CHECK(all_are(s.slice_grad(i), pass * (s.mean(2) + static_cast<double>(i))));
      }
    }
    s.scatter->clear();
    CHECK(!s.slice_grad(0).defined());
    s.backward({0, 1, 2}, 5);
    CHECK(all_are(s.slice_grad(1), s.mean(5) + 1));
    CHECK(s.scatter->passes() == 4);
  }
}

TEST_CASE("arrays travel in the order in which they were complete on rank 0") {
  Scattered s({10, 10, 10}, 1);
  CHECK(s.scatter->arrays() == std::vector<std::vector<std::string>>{{"c"}, {"b"}, {"a"}});
  // The engine runs first what was computed last.
  auto& [name_a, a] = s.all[0];
  auto& [name_b, b] = s.all[1];
  auto& [name_c, c] = s.all[2];
  (((c * 2).sum() * b).sum() * a).sum().backward();
  CHECK(s.scatter->arrays().front() == std::vector<std::string>{"a"});
  CHECK(s.slice_grad(2).defined());
}

TEST_CASE("arrays travel in rank 0's order where the others were complete in another") {
  Scattered s({10, 10, 10}, 1);
  auto& a = s.all[0].tensor;
  auto& b = s.all[1].tensor;
  auto& c = s.all[2].tensor;
  const auto pass = [&] {
    s.scatter->clear();
    s.fixture.rank == 0 ? (((c * 2).sum() * b).sum() * a).sum().backward()
                        : (((a * 2).sum() * b).sum() * c).sum().backward();
  };
  pass();
  CHECK(s.scatter->arrays() == std::vector<std::vector<std::string>>{{"a"}, {"b"}, {"c"}});
  const auto first = s.slice_grad(0).clone();
  pass();
  CHECK(at::equal(s.slice_grad(0), first));
}

TEST_CASE(
    "parameters that some ranks use count, those that none uses keep their gradient; unless allowed, it is an error by "
    "name") {
  for (const auto signals : {parallel::SignalPath::behind_gradients, parallel::SignalPath::from_host_to_host}) {
    Scattered s({10, 10}, 1, signals);
    CHECK_THROWS_WITH(s.backward({1}, 1), ContainsSubstring("no gradient to a"));
    Scattered allowed({10, 10}, 1, signals);
    allowed.fixture.options.find_unused_parameters = true;
    allowed.backward({1}, 1);
    CHECK(!allowed.slice_grad(0).defined());
    const bool uses = allowed.fixture.rank == 0;
    allowed.backward(uses ? std::vector<std::size_t>{0, 1} : std::vector<std::size_t>{1}, 1);
    CHECK(all_are(allowed.slice_grad(0), 1.0 / allowed.fixture.size));
  }
}

TEST_CASE("paused, gradients need not be complete until they have to be") {
  Scattered s({10, 10}, 1);
  s.paused = true;
  s.backward({0}, 1);
  s.paused = false;
  s.backward({1}, 1);
  CHECK(all_are(s.slice_grad(0), s.mean(1)));
  CHECK(all_are(s.slice_grad(1), s.mean(1) + 1));
}

TEST_CASE("a pass in which a parameter is missing is an error, even after complete ones") {
  Scattered s({10, 10}, 1);
  s.backward({0, 1}, 1);
  s.backward({0, 1}, 1);
  CHECK_THROWS_WITH(s.backward({1}, 1), ContainsSubstring("no gradient to a"));
}

TEST_CASE("a gradient that was removed is in no later sum, whatever other gradients of its array are kept") {
  Scattered s({10, 10}, 1000);
  s.backward({0, 1}, 5);
  s.flat().slice(0).mutable_grad().reset();  // by one of two optimizers, which has it
  s.backward({0, 1}, 1);
  CHECK(all_are(s.slice_grad(0), s.mean(1)));
  CHECK(all_are(s.slice_grad(1), s.mean(5) + 1 + s.mean(1) + 1));
}

TEST_CASE("a gradient of a paused pass that zero_grad removes is missing again") {
  Scattered s({10, 10}, 1);
  s.paused = true;
  s.backward({0}, 1);
  s.scatter->clear();
  s.paused = false;
  CHECK_THROWS_WITH(s.backward({1}, 1), ContainsSubstring("no gradient to a"));
}

TEST_CASE("a gradient that arrives after its array was sent travels in a second round; later the array is sent last") {
  Scattered s({10, 10}, 1);
  const auto a = s.all[0].tensor;
  const auto b = s.all[1].tensor;
  for (int pass = 0; pass < 3; ++pass) {
    s.scatter->clear();
    const auto last = (b * 2).sum();
    auto first = a.sum();
    // A backward within backward, as in recomputation, reaches b; then the outer one does.
    first.register_hook([b](const at::Tensor&) {
      const at::AutoGradMode with(true);
      (b * 3).sum().backward();
    });
    s.fixture.pass.run(last + first);
    s.scatter->finish();
    CHECK(all_are(s.slice_grad(0), 1));
    CHECK(all_are(s.slice_grad(1), 5));
    CHECK(s.scatter->arrays() == std::vector<std::vector<std::string>>{{"a"}, {"b"}});
  }
}

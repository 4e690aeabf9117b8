// Random numbers that data sets, streams and join functions draw while a loader reads them.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/ops/bernoulli.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/multinomial.h>
#include <ATen/ops/normal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/poisson.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/rand_like.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randperm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <functional>
#include <hortator/data.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/generators/own_generator.hpp"
#include "support/catch.hpp"

using namespace hortator;

namespace {

using NoisyBatches = std::vector<at::Tensor>;

/// Sample i is i and what it draws.
struct Noisy {
  std::int64_t count = 0;
  std::int64_t size() const { return count; }
  at::Tensor get(std::int64_t i) const { return at::cat({at::full({1}, static_cast<double>(i)), at::rand({3})}); }
};

struct NoisyStream {
  std::int64_t count = 0;
  std::int64_t next_sample = 0;
  double drawn_at_start = 0;

  void reset() {
    next_sample = 0;
    drawn_at_start = at::rand({1}).item<double>();
  }
  std::optional<at::Tensor> next() {
    if (next_sample == count) return std::nullopt;
    return at::cat({at::full({1}, static_cast<double>(next_sample++)), at::full({1}, drawn_at_start), at::rand({2})});
  }
};

/// A stream that gives each rank every world-th sample.
struct NoisyParts : NoisyStream {
  int world = 1, rank = 0;
  void shard(int world_, int rank_) {
    world = world_;
    rank = rank_;
  }
  std::optional<at::Tensor> next() {
    while (next_sample < count && next_sample % world != rank) ++next_sample;
    return NoisyStream::next();
  }
};

at::Tensor joined_with_noise(const std::vector<at::Tensor>& samples) {
  const auto rows = at::stack(samples);
  return at::cat({rows, at::rand({1}).expand({rows.size(0), 1})}, 1);
}

auto noisy_loader(const LoaderOptions& options, const LoaderBinding& binding = {}) {
  auto loader = data_loader(Noisy{23}, options, joined_with_noise);
  loader.bind(binding);
  return loader;
}

auto noisy_stream(const LoaderOptions& options, const LoaderBinding& binding = {}) {
  auto loader = data_loader(NoisyStream{23}, options, joined_with_noise);
  loader.bind(binding);
  return loader;
}

/// The batches of the next pass, whose loop draws and takes its time as a training step does.
NoisyBatches batches_of(const DataLoader<at::Tensor>& loader, std::size_t at_most = 1000) {
  NoisyBatches batches;
  if (at_most == 0) return batches;
  for (auto& batch : loader) {
    batches.push_back(batch);
    at::rand({1});
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    if (batches.size() == at_most) break;
  }
  return batches;
}

bool are_equal(const NoisyBatches& a, const NoisyBatches& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!at::equal(a[i], b[i])) return false;
  return true;
}

at::Tensor main_state() { return at::globalContext().defaultGenerator(at::kCPU).get_state(); }

}  // namespace

TEST_CASE("random numbers of samples and batches do not depend on how far ahead they are read") {
  const auto expected = batches_of(noisy_loader({.batch_size = 4, .shuffle = true, .prefetch = 0}, {.seed = 5}));
  for (const int prefetch : {0, 1, 3})
    for (const int workers : {1, 2, 3}) {
      if (prefetch == 0 && workers > 1) continue;  // refused
      INFO("prefetch " << prefetch << ", " << workers << " workers");
      const LoaderOptions options{.batch_size = 4, .shuffle = true, .prefetch = prefetch, .workers = workers};
      CHECK(are_equal(batches_of(noisy_loader(options, {.seed = 5})), expected));
    }
  const auto stream = batches_of(noisy_stream({.batch_size = 4, .prefetch = 0}, {.seed = 5}));
  for (const int prefetch : {1, 3})
    CHECK(are_equal(batches_of(noisy_stream({.batch_size = 4, .prefetch = prefetch}, {.seed = 5})), stream));
}

TEST_CASE("samples, epochs, seeds and loaders draw different random numbers") {
  const LoaderOptions options{.batch_size = 23};
  auto loader = noisy_loader(options, {.seed = 5});
  const auto epoch = batches_of(loader).at(0);
  CHECK_FALSE(at::equal(epoch[0].narrow(0, 1, 3), epoch[1].narrow(0, 1, 3)));
  CHECK_FALSE(at::equal(epoch[0].narrow(0, 1, 3), epoch[0].narrow(0, 2, 3)));
  CHECK_FALSE(at::equal(batches_of(loader).at(0), epoch));
  CHECK_FALSE(at::equal(batches_of(noisy_loader(options, {.seed = 6})).at(0), epoch));
  CHECK_FALSE(at::equal(batches_of(noisy_loader(options, {.seed = 5, .number = 1})).at(0), epoch));
  CHECK(at::equal(batches_of(noisy_loader(options, {.seed = 5})).at(0), epoch));
}

TEST_CASE("reading leaves the random numbers of the loop as they are") {
  const auto numbers = [](const auto& loader) {
    at::manual_seed(3);
    std::vector<double> drawn;
    for ([[maybe_unused]] auto& batch : loader) drawn.push_back(at::rand({1}).item<double>());
    return drawn;
  };
  at::manual_seed(3);
  std::vector<double> expected;
  for (int i = 0; i < 6; ++i) expected.push_back(at::rand({1}).item<double>());
  for (const int prefetch : {0, 2}) {
    CHECK(numbers(noisy_loader({.batch_size = 4, .prefetch = prefetch})) == expected);
    CHECK(numbers(noisy_stream({.batch_size = 4, .prefetch = prefetch})) == expected);
  }
}

TEST_CASE("a resumed pass draws the random numbers of the pass that never stopped") {
  const LoaderOptions options{.batch_size = 4, .shuffle = true};
  const auto check = [](const auto& make) {
    const auto never_stopped = batches_of(make());
    for (std::size_t stop = 0; stop <= never_stopped.size(); ++stop) {
      auto stopped = make();
      auto seen = batches_of(stopped, stop);
      auto resumed = make();
      resumed.load(stopped.state());
      if (stop < never_stopped.size())
        for (auto& batch : batches_of(resumed)) seen.push_back(batch);
      INFO("stopped after " << stop);
      CHECK(are_equal(seen, never_stopped));
    }
  };
  check([&] { return noisy_loader(options, {.seed = 5}); });
  check([&] { return noisy_stream({.batch_size = 4}, {.seed = 5}); });
}

TEST_CASE("each sample draws the same random numbers on any number of ranks") {
  const auto samples_of = [](int world, bool is_stream) {
    at::Tensor all = at::zeros({23, 4});
    for (int rank = 0; rank < world; ++rank) {
      const LoaderBinding binding{.rank = rank, .world = world, .seed = 5};
      for (const auto& batch : batches_of(is_stream ? noisy_stream({.batch_size = 2}, binding)
                                                    : noisy_loader({.batch_size = 2, .shuffle = true}, binding)))
        for (std::int64_t i = 0; i < batch.size(0); ++i)
          all[batch[i][0].item<std::int64_t>()] = batch[i].narrow(0, 0, 4);
    }
    return all;
  };
  for (const bool is_stream : {false, true})
    for (const int world : {2, 3}) CHECK(at::equal(samples_of(world, is_stream), samples_of(1, is_stream)));
}

TEST_CASE("ranks that read parts of a stream draw the same when it begins, and different numbers for their samples") {
  NoisyBatches first;
  for (const int rank : {0, 1}) {
    auto loader = data_loader(NoisyParts{{.count = 8}}, LoaderOptions{.batch_size = 2});
    // The other rank has as much as this one.
    loader.bind({.rank = rank, .world = 2, .seed = 5, .gather_rows = [](std::int64_t rows) {
                   return std::vector<std::int64_t>{rows, rows};
                 }});
    first.push_back(batches_of(loader).at(0)[0]);
  }
  CHECK(at::equal(first[0][1], first[1][1]));
  CHECK_FALSE(at::equal(first[0].narrow(0, 2, 2), first[1].narrow(0, 2, 2)));
}

TEST_CASE("data sets that read whole batches draw by the batch") {
  struct Batches {
    std::int64_t size() const { return 12; }
    at::Tensor get_batch(std::span<const std::int64_t> samples) const {
      return at::rand({static_cast<std::int64_t>(samples.size())});
    }
  };
  const auto expected = batches_of(data_loader(Batches{}, {.batch_size = 4, .prefetch = 0}));
  CHECK(are_equal(batches_of(data_loader(Batches{}, {.batch_size = 4, .prefetch = 3})), expected));
  CHECK_FALSE(at::equal(expected.at(0), expected.at(1)));
}

TEST_CASE("a generator that the data set passes is used") {
  struct Seeded {
    at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(9);
    std::int64_t size() const { return 3; }
    at::Tensor get(std::int64_t /*i*/) { return at::rand({2}, generator); }
  };
  auto generator = at::make_generator<at::CPUGeneratorImpl>(9);
  for (const auto& batch : batches_of(data_loader(Seeded{}))) CHECK(at::equal(batch[0], at::rand({2}, generator)));
}

TEST_CASE("every operator that draws on the CPU takes the numbers of the scope") {
  runtime::intercept_random_operators();
  using Draw = std::function<at::Tensor()>;
  const std::vector<std::pair<std::string, Draw>> operators = {
      {"rand", [] { return at::rand({8}); }},
      {"rand_like", [] { return at::rand_like(at::zeros({8})); }},
      {"randn", [] { return at::randn({8}); }},
      {"randn double", [] { return at::randn({20}, at::kDouble); }},
      {"randint", [] { return at::randint(1000000, {8}); }},
      {"randperm", [] { return at::randperm(100); }},
      {"normal", [] { return at::normal(at::zeros({8}), at::ones({8})); }},
      {"bernoulli", [] { return at::bernoulli(at::full({64}, 0.5)); }},
      {"multinomial", [] { return at::multinomial(at::ones({1000}), 5); }},
      {"poisson", [] { return at::poisson(at::full({8}, 1000.0)); }},
      {"dropout", [] { return at::dropout(at::ones({64}), 0.5, true); }},
      {"uniform_", [] { return at::empty({8}).uniform_(); }},
      {"normal_", [] { return at::empty({8}).normal_(); }},
      {"random_", [] { return at::empty({8}, at::kLong).random_(); }},
      {"exponential_", [] { return at::empty({8}).exponential_(); }},
      {"cauchy_", [] { return at::empty({8}).cauchy_(); }},
      {"log_normal_", [] { return at::empty({8}).log_normal_(); }},
      {"geometric_", [] { return at::empty({8}).geometric_(0.001); }},
  };
  for (const auto& [name, draw] : operators) {
    INFO(name);
    const auto before = main_state();
    runtime::OwnGenerator own(4);
    const auto drawn = [&] {
      const runtime::DrawFrom scope(own);
      return draw();
    };
    const auto first = drawn();
    CHECK_FALSE(at::equal(drawn(), first));
    own.seed(4);
    CHECK(at::equal(drawn(), first));
    CHECK(at::equal(main_state(), before));
    draw();
    CHECK_FALSE(at::equal(main_state(), before));
  }
}

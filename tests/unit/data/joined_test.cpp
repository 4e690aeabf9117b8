// Batches of a step that a rank gets as one have the samples of those that it gets one by one.
#include <hortator/error.hpp>

#include "streams.hpp"
#include "support/catch.hpp"

using namespace hortator;
using namespace hortator::data_test;

namespace {

constexpr int parts = 4;

Batches in_steps(const Batches& batches) {
  Batches steps;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    if (i % parts == 0) steps.emplace_back();
    steps.back().insert(steps.back().end(), batches[i].begin(), batches[i].end());
  }
  return steps;
}

LoaderBinding one_by_one(int rank, bool split) {
  return {.rank = rank, .world = 2, .parts = parts, .split_batches = split};
}

LoaderBinding joined(int rank, bool split) {
  return {.rank = rank, .world = 2, .joined = parts, .split_batches = split};
}

}  // namespace

TEST_CASE("joined batches have the samples of a step's batches, with any number of samples") {
  for (const bool split : {false, true}) {
    for (const bool drop_last : {false, true}) {
      for (const std::int64_t count : {1, 15, 16, 17, 31, 32, 40}) {
        for (int rank = 0; rank < 2; ++rank) {
          INFO(count << " samples, rank " << rank << ", split " << split << ", drop_last " << drop_last);
          const LoaderOptions options{
              .batch_size = split ? 16 : 2, .shuffle = true, .drop_last = drop_last, .prefetch = 0};
          const auto bound = [&](const LoaderBinding& binding) {
            auto loader = data_loader(Numbers{count}, options);
            loader.bind(binding);
            return loader;
          };
          const auto whole = bound(joined(rank, split)), each = bound(one_by_one(rank, split));
          CHECK(whole.size() * parts == each.size());
          CHECK(whole.total_batch_size() == each.total_batch_size());
          CHECK(read(whole) == in_steps(read(each)));
          CHECK(read(whole) == in_steps(read(each)));  // another epoch
          CHECK(whole.remainder() == each.remainder());
          CHECK(read(bound_stream(Counting{count}, {.batch_size = options.batch_size, .drop_last = drop_last},
                                  joined(rank, split))) ==
                in_steps(read(bound_stream(Counting{count}, {.batch_size = options.batch_size, .drop_last = drop_last},
                                           one_by_one(rank, split)))));
        }
      }
    }
  }
}

TEST_CASE("a pass over joined batches resumes where one over single batches has stopped, and the reverse") {
  const auto bound = [](const LoaderBinding& binding) {
    auto loader = data_loader(Numbers{50}, {.batch_size = 2, .shuffle = true});
    loader.bind(binding);
    return loader;
  };
  const auto all = read(bound(joined(1, false)));
  REQUIRE(all.size() == 4);
  auto stopped = bound(one_by_one(1, false));
  read(stopped, 2 * parts);
  auto resumed = bound(joined(1, false));
  resumed.load(stopped.state());
  CHECK(resumed.first_step() == 2);
  CHECK(read(resumed, 1) == Batches{all[2]});
  auto last = bound(one_by_one(1, false));
  last.load(resumed.state());
  CHECK(in_steps(read(last)) == Batches{all[3]});
}

TEST_CASE("joined batches are announced one by one, and have the random numbers of single ones") {
  struct Drawn {
    std::int64_t size() const { return 16; }
    at::Tensor get(std::int64_t /*i*/) const { return at::rand({2}); }
  };
  const auto drawn = [](LoaderBinding binding) {
    auto loader = data_loader(Drawn(), {.batch_size = 2, .seed = 5});
    loader.bind(binding);
    std::vector<at::Tensor> all;
    for (auto& batch : loader) all.push_back(batch);
    return at::cat(all);
  };
  std::vector<int> announced;
  auto binding = joined(0, false);
  binding.before_part = [&](int part) { announced.push_back(part); };
  CHECK(at::equal(drawn(binding), drawn(one_by_one(0, false))));
  CHECK(announced == std::vector{0, 1, 2, 3});
}

TEST_CASE("batches that were padded to different lengths cannot be joined") {
  struct Growing {
    std::int64_t size() const { return 8; }
    at::Tensor get(std::int64_t i) const { return at::zeros({1 + i / 2}); }
  };
  auto loader = data_loader(Growing(), {.batch_size = 2});
  loader.bind({.joined = parts});
  CHECK_THROWS_WITH(loader.begin(), ContainsSubstring("pad all samples to one length"));
}

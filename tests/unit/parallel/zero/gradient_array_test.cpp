#include "parallel/zero/gradient_array.hpp"

#include <ATen/ops/full_like.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <optional>

#include "parallel/zero/sharding.hpp"
#include "parallel/zero/travel_buffers.hpp"
#include "support/catch.hpp"
#include "unit/parallel/reducer_fixture.hpp"

using namespace hortator;
using test::all_are;
using test::parameter;

namespace {

/// Parameters of 5 and of 3 elements, in arrays of at most `bytes`.
struct ScatteredArrays {
  explicit ScatteredArrays(std::int64_t bytes) {
    all = {{.name = "a", .tensor = parameter({5})}, {.name = "b", .tensor = parameter({3})}};
    flat.emplace(fixture.communicator, all, parallel::ShardLimits{.first_bytes = bytes, .bytes = bytes},
                 parallel::Masters::no);
    auto parallel = fixture.parallel();
    parallel.sharding = &sharding;
    for (std::size_t i = 0; i < flat->plan().flats.size(); ++i)
      arrays.emplace_back(*flat, i, at::zeros({flat->plan().part_elements(i)}), parallel, sharding.ranks);
  }
  void accumulate(parallel::GradientArray::Member& member) const {
    member.tensor.mutable_grad() = at::full_like(member.tensor.detach(), fixture.rank + 1);
  }

  test::ReducerFixture fixture;
  parallel::Sharding sharding{.stage = 2, .ranks = {.group = fixture.communicator}, .masters = parallel::Masters::no};
  std::vector<parallel::FlatParameters::Parameter> all;
  std::optional<parallel::FlatParameters> flat;
  std::vector<parallel::GradientArray> arrays;
};

}  // namespace

TEST_CASE("an array of gradients is complete when all have arrived, and gives each rank the mean of its part") {
  const at::NoGradGuard no_grad;
  ScatteredArrays scattered(1 << 20);
  REQUIRE(scattered.arrays.size() == 1);
  auto& array = scattered.arrays[0];
  auto& members = array.members();
  for (auto& member : members) scattered.accumulate(member);
  CHECK_FALSE(array.note(members[1]));
  CHECK_FALSE(array.note(members[1]));
  CHECK_FALSE(array.is_full());
  CHECK(array.note(members[0]));
  CHECK(array.is_full());
  CHECK(array.has_leftovers());

  const auto buffer = scattered.fixture.communicator.allocate(array.elements(), array.travel_type());
  array.pack(buffer);
  CHECK_FALSE(members[0].tensor.grad().defined());
  CHECK_FALSE(array.has_leftovers());
  array.start(buffer);
  CHECK(array.is_on_the_way());
  CHECK_FALSE(array.note(members[0]));  // it travels in the next round
  array.wait();
  array.unpack();
  CHECK_FALSE(array.is_on_the_way());
  for (const auto& member : members) {
    array.publish(member);
    CHECK(all_are(array.gradient(member), scattered.fixture.mean_rank + 1));
  }
  array.end_pass(true);
  CHECK_FALSE(array.is_full());
}

TEST_CASE("buffers are used in turn, and are as long as the longest array") {
  ScatteredArrays scattered(1);
  REQUIRE(scattered.arrays.size() == 2);
  parallel::TravelBuffers buffers(scattered.arrays);
  auto& first = buffers.next(scattered.arrays[0]);
  auto& second = buffers.next(scattered.arrays[0]);
  CHECK(&first != &second);
  CHECK(&buffers.next(scattered.arrays[0]) == &first);
  CHECK(second.memory.numel() == std::max(scattered.arrays[0].elements(), scattered.arrays[1].elements()));
  first.taken_by = &scattered.arrays[1];
  buffers.free(scattered.arrays[0]);
  CHECK(first.taken_by == &scattered.arrays[1]);
  buffers.free(scattered.arrays[1]);
  CHECK(first.taken_by == nullptr);
}

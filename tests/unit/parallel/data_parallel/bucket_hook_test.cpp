#include <ATen/ops/arange.h>

#include <hortator/error.hpp>

#include "parallel/data_parallel/gradient_reducer.hpp"
#include "support/catch.hpp"
#include "unit/parallel/reducer_fixture.hpp"

using namespace hortator;
using test::all_are;
using test::parameter;
using test::ReducerFixture;

namespace {

void average(BucketExchange& bucket) {
  bucket.sum(bucket.gradients);
  bucket.gradients.div_(bucket.ranks);
}

}  // namespace

TEST_CASE("a bucket hook averages each bucket, in one order on all ranks") {
  ReducerFixture f;
  if (f.alone()) return;
  std::vector<std::int64_t> order;
  f.options = {.bucket_cap_mb = test::one_byte_buckets, .bucket_hook = [&](BucketExchange& bucket) {
                 order.push_back(bucket.index);
                 CHECK(bucket.rank == f.rank);
                 CHECK(bucket.ranks == f.size);
                 average(bucket);
               }};
  auto a = parameter({3}), b = parameter({2, 2}), c = parameter({});
  parallel::GradientReducer reducer({{"a", a}, {"b", b}, {"c", c}}, f.parallel());
  for (int pass = 1; pass <= 3; ++pass) {
    ((a.sum() + 2 * b.sum() + 3 * c) * (f.rank + 1)).backward();
    CHECK(all_are(a.grad(), pass * (f.mean_rank + 1)));
    CHECK(all_are(b.grad(), pass * 2 * (f.mean_rank + 1)));
    CHECK(all_are(c.grad(), pass * 3 * (f.mean_rank + 1)));
  }
  CHECK(order == std::vector<std::int64_t>{0, 1, 2, 0, 1, 2, 0, 1, 2});
}

TEST_CASE("what a bucket hook leaves is what the parameters get, also in a tensor of its own") {
  ReducerFixture f;
  if (f.alone()) return;
  f.options.bucket_hook = [](BucketExchange& bucket) {
    const auto all = bucket.gather(bucket.gradients.to(at::kHalf));  // half the bytes
    bucket.gradients = std::get<0>(all.to(at::kFloat).max(0));
  };
  auto a = parameter({40});
  parallel::GradientReducer reducer({{"a", a}}, f.parallel());
  const auto mine = at::arange(40).to(at::kFloat) * (f.rank + 1);
  (a * mine).sum().backward();
  CHECK(at::equal(a.grad(), at::arange(40).to(at::kFloat) * f.size));
}

TEST_CASE("with a bucket hook a parameter without a gradient is still reported by all ranks") {
  ReducerFixture f;
  if (f.alone()) return;
  f.options.bucket_hook = average;
  auto a = parameter({3}), b = parameter({2});
  parallel::GradientReducer reducer({{"a", a}, {"b", b}}, f.parallel());
  (a.sum() + b.sum()).backward();
  auto loss = a.sum();
  if (f.rank != 1) loss = loss + b.sum();
  CHECK_THROWS_WITH(loss.backward(), ContainsSubstring("gave no gradient to b"));
}

TEST_CASE("a bucket hook together with a type to travel in is refused") {
  CHECK_THROWS_WITH(parallel::check({.comm_hook = DDPCommunicationHookType::bf16, .bucket_hook = average}),
                    ContainsSubstring("are both set"));
  CHECK_NOTHROW(parallel::check({.bucket_hook = average}));
}

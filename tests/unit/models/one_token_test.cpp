// What generation computes for one token without operators, against the operators.
#include <ATen/ATen.h>

#include "models/layers/modules.hpp"
#include "models/layers/plain_tensor.hpp"
#include "models/layers/rotary.hpp"
#include "support/catch.hpp"

using namespace hortator;

TEST_CASE("rows are normalised as the operators normalise them") {
  const auto width = GENERATE(1, 7, 64, 577);
  models::RmsNorm norm(width, 1e-6);
  const at::NoGradGuard no_grad;
  norm->weight.copy_(at::randn({width}));
  const auto x = at::randn({3, 1, width});
  REQUIRE(models::is_plain_and_small(x));
  const auto direct = norm(x);
  const at::AutoGradMode grad(true);
  CHECK(at::allclose(direct, norm(x), 1e-5, 1e-6));
}

TEST_CASE("a row of another width than the weight's is refused") {
  models::RmsNorm norm(8, 1e-6);
  const at::NoGradGuard no_grad;
  CHECK_THROWS(norm(at::randn({2, 1, 16})));
}

TEST_CASE("one token's heads are rotated as the operators rotate them") {
  const auto batches = GENERATE(1, 2);
  const models::RotaryEmbedding::Rotation rotate{.cosine = at::randn({batches, 1, 1, 6}),
                                                 .sine = at::randn({batches, 1, 1, 6})};
  const auto heads = at::randn({2, 1, 5 * 6}).unflatten(-1, {-1, 6}).transpose(1, 2);
  const at::NoGradGuard no_grad;
  REQUIRE(models::is_plain_and_small(heads));
  const auto direct = rotate(heads);
  const at::AutoGradMode grad(true);
  CHECK(at::allclose(direct, rotate(heads), 1e-6, 1e-6));
}

TEST_CASE("tensors of other types, with gradients or with strides are left to the operators") {
  const auto x = at::randn({4, 8});
  CHECK_FALSE(models::is_plain(x));
  const at::NoGradGuard no_grad;
  CHECK(models::is_plain(x));
  CHECK_FALSE(models::is_plain(x.t()));
  CHECK_FALSE(models::is_plain(x.to(at::kBFloat16)));
  CHECK_FALSE(models::is_plain_and_small(at::empty({1024, 1024})));
}

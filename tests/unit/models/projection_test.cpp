// Products of few rows, as generation has them.
#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>

#include "models/layers/projection.hpp"
#include "support/catch.hpp"

using namespace hortator;
using models::project;

TEST_CASE("few rows are multiplied as at::linear multiplies them") {
  const at::NoGradGuard no_grad;
  const auto columns = GENERATE(1, 15, 32, 33, 63, 96, 577);
  const auto rows = GENERATE(1, 2, 3, 4, 5);
  INFO(rows << " rows of " << columns);
  const auto x = at::randn({rows, 1, columns}), weight = at::randn({41, columns});
  const auto y = project(x, weight);
  CHECK(y.sizes() == at::IntArrayRef({rows, 1, 41}));
  CHECK(at::allclose(y, at::linear(x, weight), 1e-4, 1e-4));
}

TEST_CASE("what is not plain float32 goes through at::linear") {
  const auto x = at::randn({1, 64}), weight = at::randn({8, 64}).set_requires_grad(true);
  CHECK(project(x, weight).requires_grad());
  const at::NoGradGuard no_grad;
  CHECK(project(x.to(at::kHalf), weight.to(at::kHalf)).scalar_type() == at::kHalf);
  const auto columns = at::randn({64, 8});
  CHECK(at::allclose(project(x, columns.t()), at::linear(x, columns.t()), 1e-4, 1e-4));
  const auto every_second = at::randn({1, 128}).slice(1, 0, 128, 2);
  CHECK(at::allclose(project(every_second, weight), at::linear(every_second, weight), 1e-4, 1e-4));
  CHECK_THROWS(project(at::randn({1, 63}), weight));
  at::autocast::set_autocast_enabled(at::kCPU, true);
  const auto type = project(x, weight).scalar_type();
  at::autocast::set_autocast_enabled(at::kCPU, false);
  CHECK(type == at::linear(x.to(at::autocast::get_autocast_dtype(at::kCPU)),
                           weight.to(at::autocast::get_autocast_dtype(at::kCPU)))
                    .scalar_type());
}

#ifdef __x86_64__
// LibTorch's own product, which other computers use, may round differently.
TEST_CASE("a row is the same in any batch of up to four") {
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512vl")) return;
  const at::NoGradGuard no_grad;
  const auto x = at::randn({4, 576}), weight = at::randn({100, 576});
  const auto all = project(x, weight);
  for (std::int64_t rows = 1; rows < 4; ++rows)
    CHECK(at::equal(project(x.narrow(0, 0, rows), weight), all.narrow(0, 0, rows)));
}
#endif

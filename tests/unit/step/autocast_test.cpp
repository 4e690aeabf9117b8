#include <ATen/autocast_mode.h>
#include <ATen/ops/ones.h>

#include <hortator/training/autocast.hpp>
#include <stdexcept>

#include "support/catch.hpp"

using namespace hortator;
namespace autocast = at::autocast;

namespace {

at::ScalarType type_of_product() { return at::ones({2, 2}).matmul(at::ones({2, 2})).scalar_type(); }

// LibTorch's autocast settings for the CPU.
auto remembered() {
  return std::tuple(autocast::is_autocast_enabled(at::kCPU), autocast::get_autocast_dtype(at::kCPU),
                    autocast::is_autocast_cache_enabled());
}

}  // namespace

TEST_CASE("operators compute in the scope's type within it, and as before outside") {
  const auto before = remembered();
  for (const auto type : {at::kBFloat16, at::kHalf}) {
    {
      const Autocast mixed(at::kCPU, type, {.cache_enabled = false});
      CHECK(type_of_product() == type);
      CHECK_FALSE(autocast::is_autocast_cache_enabled());
    }
    CHECK(type_of_product() == at::kFloat);
    CHECK(remembered() == before);
  }
}

TEST_CASE("scopes nest, including those that disable autocast") {
  const auto before = remembered();
  {
    const Autocast outer(at::kCPU, at::kBFloat16);
    {
      const Autocast inner(at::kCPU, at::kHalf);
      CHECK(type_of_product() == at::kHalf);
      {
        const Autocast off(at::kCPU, at::kBFloat16, {.enabled = false});
        CHECK(type_of_product() == at::kFloat);
      }
      CHECK(type_of_product() == at::kHalf);
    }
    CHECK(type_of_product() == at::kBFloat16);
  }
  CHECK(remembered() == before);
}

TEST_CASE("an exception restores the settings") {
  const auto before = remembered();
  const auto throwing = [] {
    const Autocast mixed(at::kCPU, at::kBFloat16, {.cache_enabled = false});
    throw std::runtime_error("from within");
  };
  CHECK_THROWS_AS(throwing(), std::runtime_error);
  CHECK(remembered() == before);
  CHECK(type_of_product() == at::kFloat);
}

TEST_CASE("a scope without a type does nothing") {
  const Autocast none(at::kCPU, std::nullopt);
  CHECK(type_of_product() == at::kFloat);
}

TEST_CASE("a parameter is cast once, and again after the outermost scope") {
  auto weight = at::ones({2, 2}).requires_grad_();
  const auto x = at::ones({2, 2});
  const auto add_one = [&] {
    const at::NoGradGuard no_grad;
    weight.add_(1);
  };
  {
    const Autocast outer(at::kCPU, at::kBFloat16);
    {
      const Autocast inner(at::kCPU, at::kBFloat16);
      CHECK(x.matmul(weight)[0][0].item<double>() == 2);
    }
    add_one();
    CHECK(x.matmul(weight)[0][0].item<double>() == 2);  // cached: the scope has not ended
  }
  const Autocast next(at::kCPU, at::kBFloat16);
  CHECK(x.matmul(weight)[0][0].item<double>() == 4);
}

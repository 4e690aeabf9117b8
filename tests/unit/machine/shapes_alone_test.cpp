#include <ATen/ATen.h>

#include "machine/shapes/shape_operators.hpp"
#include "support/catch.hpp"

using namespace hortator::machine;

TEST_CASE("with shapes alone, results have the shapes and types of those that are computed, however small") {
  const auto x = at::ones({2, 3, 8, 8}), weight = at::ones({4, 3, 3, 3}), table = at::ones({5, 8});
  const auto ids = at::zeros({2, 7}, at::kLong);
  const auto all = [&] {
    return std::vector<at::Tensor>{at::conv2d(x, weight),
                                   at::embedding(table, ids),
                                   at::softmax(x, 1).transpose(1, 2),
                                   at::scaled_dot_product_attention(x, x, x),
                                   at::dropout(x, 0.5, true),
                                   x.sum({1, 2}),
                                   at::cat({x, x}, 1),
                                   x.to(at::kBFloat16),
                                   at::batch_norm(x, {}, {}, {}, {}, true, 0.1, 1e-5, true)};
  };
  const auto computed = all();
  const auto shapes = [&] {
    const ShapesAlone alone;
    return all();
  }();
  REQUIRE(shapes.size() == computed.size());
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    INFO("result " << i);
    CHECK(shapes[i].sizes() == computed[i].sizes());
    CHECK(shapes[i].scalar_type() == computed[i].scalar_type());
  }
}

TEST_CASE("with shapes alone nothing is written, and what needs elements throws") {
  auto x = at::ones({4});
  {
    const ShapesAlone alone;
    x.add_(1);
    x.zero_();
    CHECK_THROWS_AS(x.sum().item<float>(), NeedsElements);
    CHECK_THROWS_AS(at::nonzero(x), NeedsElements);
    CHECK_THROWS_AS(at::masked_select(x, x > 0), NeedsElements);
    CHECK_THROWS_AS(x.index({x > 0}), NeedsElements);
  }
  CHECK(at::equal(x, at::ones({4})));
  CHECK((x + 1).sum().item<float>() == 8);
}

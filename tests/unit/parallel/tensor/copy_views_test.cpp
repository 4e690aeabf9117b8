// Views of the copies that are gathered for operators without a rule.
#include <hortator/error.hpp>

#include "parallel/tensor/copy_views.hpp"
#include "unit/parallel/tensor/tensor_fixture.hpp"

using namespace hortator;
using test::check_close;
using test::second;
using test::TensorGroup;

namespace {

/// A divided activation, and its values.
struct Activation {
  TensorGroup group;
  at::Tensor whole = at::arange(24, at::kFloat).view({2, 12});
  at::Tensor leaf = group.divided(whole, second);
  at::Tensor divided = leaf * 1;
};

}  // namespace

TEST_CASE("a write into a view of a gathered copy is refused, however the view was made") {
  const Activation x;
  if (x.group.ranks->size() == 1) return;
  const at::NoGradGuard no_grad;
  const auto in_heads = x.divided.view({2, 3, 4});  // three heads are not divided by 2 or 4 ranks
  const auto column = x.divided.select(1, 5);
  CHECK(parallel::is_copy_view(in_heads));
  CHECK_FALSE(parallel::is_divided(in_heads));
  CHECK_THROWS_WITH(in_heads.zero_(), ContainsSubstring("a view of a tensor that is divided among ranks"));
  CHECK_THROWS_WITH(in_heads.select(1, 0).transpose(0, 1).add_(1), ContainsSubstring("aten::add_"));
  CHECK_THROWS_WITH(x.divided[0][5].fill_(3), ContainsSubstring("gathered copy"));
  CHECK_THROWS_WITH(column.flatten().mul_(2), ContainsSubstring("gathered copy"));
  CHECK_THROWS_WITH(at::add_out(const_cast<at::Tensor&>(column), column, column), ContainsSubstring("gathered copy"));
  CHECK_THROWS_WITH(x.divided.unbind(1)[3].copy_(at::ones({2})), ContainsSubstring("gathered copy"));
  check_close(x.group.whole(x.divided), x.whole);
}

TEST_CASE("views of a gathered copy are read as any tensor, and have gradients") {
  const Activation x;
  const auto y = x.divided.view({2, 3, 4}).select(1, 1);
  check_close(y.detach() * 2, x.whole.view({2, 3, 4}).select(1, 1) * 2);
  CHECK(y[1][2].item<float>() == 18);
  auto copy = y.detach().clone();
  copy.zero_();  // memory of its own
  (at::cat({y, y * 2}, 0) * 0.5).sum().backward();
  const auto gradient = at::zeros({2, 3, 4});
  gradient.select(1, 1).fill_(1.5);
  check_close(x.leaf.grad(), x.group.part_of(gradient.view({2, 12}), second));
}

TEST_CASE("a view of a gathered copy is not read after the divided tensor was changed") {
  const Activation x;
  if (x.group.ranks->size() == 1) return;
  const at::NoGradGuard no_grad;
  auto y = x.divided * 1;
  const auto column = y.select(1, 5);
  CHECK(column.sum().item<float>() == 22);
  y.mul_(2);
  CHECK_THROWS_WITH(column.sum(), ContainsSubstring("is used after the tensor was changed"));
  CHECK(y.select(1, 5).sum().item<float>() == 44);
}

// Each rule against the same operator on whole tensors: results, and gradients of all operands.
#include <cmath>
#include <optional>
#include <string>

#include "unit/parallel/tensor/tensor_fixture.hpp"

using namespace hortator;
using parallel::Division;
using test::check_close;
using test::first;
using test::fourth;
using test::second;
using test::TensorGroup;
using test::third;

namespace {

using Tensors = std::vector<at::Tensor>;

struct RuleInput {
  at::Tensor whole;
  std::optional<Division> division = {};
};

struct RuleCase {
  std::string name;
  std::vector<RuleInput> inputs;
  std::function<at::Tensor(const Tensors&)> compute;
  std::optional<Division> result = {};  ///< how the result is divided
  std::int64_t gathers = 0;             ///< operators without a rule
};

at::Tensor leaf(const at::Tensor& values) {
  auto copy = values.clone();
  return values.is_floating_point() ? copy.requires_grad_() : copy;
}

/// Weights of the elements in a loss, so that each has another gradient.
at::Tensor weights_like(const at::Tensor& y) { return at::arange(y.numel(), at::kFloat).cos().view(y.sizes()) + 0.5; }

void compare(const TensorGroup& group, const RuleCase& one) {
  INFO(one.name);
  Tensors whole, mixed;
  for (const auto& [values, division] : one.inputs) {
    whole.push_back(leaf(values));
    mixed.push_back(division ? group.divided(values, *division) : leaf(values));
  }
  const auto expected = one.compute(whole);
  const auto before = group.gathered();
  const auto found = one.compute(mixed);
  const bool is_alone = group.ranks->size() == 1;
  CHECK(group.gathered() - before == (is_alone ? 0 : one.gathers));
  CHECK(parallel::is_divided(found) == (one.result.has_value() && !is_alone));
  if (one.result && !is_alone) CHECK(parallel::operand_of(found).division == one.result);
  CHECK(found.sizes() == expected.sizes());
  check_close(group.whole(found), expected.detach());
  if (!expected.requires_grad()) return;
  const auto weights = weights_like(expected);
  (expected * weights).sum().backward();
  (found * weights).sum().backward();
  for (std::size_t i = 0; i < whole.size(); ++i) {
    if (!whole[i].grad().defined()) continue;
    INFO("gradient of operand " << i);
    REQUIRE(mixed[i].grad().defined());
    const auto& division = one.inputs[i].division;
    check_close(mixed[i].grad(), division ? group.part_of(whole[i].grad(), *division) : whole[i].grad());
  }
}

void compare_all(const std::vector<RuleCase>& cases) {
  const TensorGroup group;
  for (const auto& one : cases) compare(group, one);
}

at::Tensor numbers(at::IntArrayRef sizes, double shift = 0) {
  std::int64_t elements = 1;
  for (const auto size : sizes) elements *= size;
  return (at::arange(elements, at::kFloat) * 0.7 + shift).sin().view(sizes);
}

Division fused(std::int64_t dim) { return {.dim = dim, .blocks = 3}; }

}  // namespace

TEST_CASE("elementwise operators keep the division") {
  const auto x = numbers({2, 3, 8}), y = numbers({2, 3, 8}, 1), bias = numbers({8}, 2), row = numbers({3, 1}, 3);
  compare_all({
      {"gelu", {{x, third}}, [](const Tensors& t) { return at::gelu(t[0]); }, third},
      {"silu", {{numbers({2, 4, 3}), second}}, [](const Tensors& t) { return at::silu(t[0]); }, second},
      {"mul", {{x, third}, {y, third}}, [](const Tensors& t) { return t[0] * t[1]; }, third},
      {"add of a whole tensor", {{x, third}, {y}}, [](const Tensors& t) { return t[0] + t[1]; }, third},
      {"add to a whole tensor", {{y}, {x, third}}, [](const Tensors& t) { return t[0] + t[1]; }, third},
      {"bias", {{x, third}, {bias}}, [](const Tensors& t) { return t[0] + t[1]; }, third},
      {"divided bias", {{x, third}, {bias, first}}, [](const Tensors& t) { return t[0] + t[1]; }, third},
      {"column", {{x, third}, {row}}, [](const Tensors& t) { return t[0] * t[1]; }, third},
      {"number", {{x, third}}, [](const Tensors& t) { return 2 * t[0] - 1; }, third},
      {"other division", {{x, third}, {bias, first}}, [](const Tensors& t) { return t[1] * t[0]; }, third},
      {"pow", {{x, third}}, [](const Tensors& t) { return t[0].pow(2); }, third},
      {"where", {{x, third}, {y}}, [](const Tensors& t) { return at::where(t[0] > 0, t[0], t[1]); }, third},
      {"masked_fill", {{x, third}}, [](const Tensors& t) { return t[0].masked_fill(t[0] > 0.5, 0); }, third},
      {"clone", {{x, third}}, [](const Tensors& t) { return t[0].clone() + t[0].contiguous(); }, third},
      {"to another type", {{x, third}}, [](const Tensors& t) { return t[0].to(at::kDouble).to(at::kFloat); }, third},
      {"in place",
       {{x, third}, {bias}},
       [](const Tensors& t) {
         auto y = t[0] * 3;
         y += t[1];
         y.mul_(2).relu_();
         return y;
       },
       third},
      {"sum of a whole tensor and divided ones in place",
       {{y}, {x, third}},
       [](const Tensors& t) { return (t[0] * 1).add_(t[1]); },
       std::nullopt,
       1},
  });
}

TEST_CASE("views move the division") {
  const auto x = numbers({2, 3, 24});
  compare_all({
      {"heads",
       {{x, third}},
       [](const Tensors& t) {
         return t[0].view({2, 3, 4, 6});
       },
       third},
      {"heads with -1",
       {{x, third}},
       [](const Tensors& t) {
         return t[0].view({2, 3, -1, 6});
       },
       third},
      {"fused heads",
       {{x, fused(2)}},
       [](const Tensors& t) {
         return t[0].view({2, 3, 3, 4, 2});
       },
       fourth},
      {"back",
       {{x, third}},
       [](const Tensors& t) {
         return t[0].view({2, 3, 4, 6}).transpose(1, 2).transpose(1, 2).reshape({2, 3, 24});
       },
       third},
      {"attention's end",
       {{numbers({2, 4, 3, 6}), second}},
       [](const Tensors& t) { return t[0].transpose(1, 2).flatten(2); },
       third},
      {"contiguous",
       {{numbers({2, 4, 3, 6}), second}},
       [](const Tensors& t) {
         return t[0].transpose(1, 2).contiguous().view({2, 3, 24});
       },
       third},
      {"rows",
       {{x, third}},
       [](const Tensors& t) {
         return t[0].view({-1, 24});
       },
       second},
      {"permute",
       {{x, third}},
       [](const Tensors& t) {
         return t[0].permute({2, 0, 1});
       },
       first},
      {"unsqueeze and squeeze",
       {{x, third}},
       [](const Tensors& t) { return t[0].unsqueeze(0).unsqueeze(-1).squeeze(0).squeeze(-1); },
       third},
      {"expand",
       {{numbers({1, 8}), second}},
       [](const Tensors& t) {
         return t[0].expand({3, 5, -1});
       },
       third},
      {"unflatten",
       {{x, third}},
       [](const Tensors& t) {
         return t[0].unflatten(-1, {4, 6});
       },
       third},
      {"merging heads into the batch",
       {{numbers({3, 2, 8}), third}},
       [](const Tensors& t) {
         return t[0].view({3, 8, 2}).transpose(0, 1);
       },
       Division{.dim = 0, .blocks = 2}},
  });
}

TEST_CASE("a view that cuts a rank's elements apart gathers") {
  compare_all({{"three heads",
                {{numbers({2, 12}), second}},
                [](const Tensors& t) {
                  return t[0].view({2, 3, 4}) * 2;
                },
                std::nullopt,
                1}});
}

TEST_CASE("pieces and their joins keep the division") {
  const auto x = numbers({2, 3, 24});
  compare_all({
      {"chunk of blocks", {{x, fused(2)}}, [](const Tensors& t) { return t[0].chunk(3, -1)[1]; }, third},
      {"split of blocks",
       {{x, fused(2)}},
       [](const Tensors& t) {
         const auto pieces = t[0].split(8, 2);
         return pieces[0] * pieces[2];
       },
       third},
      {"slice of blocks",
       {{x, fused(2)}},
       [](const Tensors& t) { return t[0].slice(2, 8, 24); },
       Division{.dim = 2, .blocks = 2}},
      {"slice of another dimension", {{x, third}}, [](const Tensors& t) { return t[0].slice(1, 0, 2); }, third},
      {"select", {{x, third}}, [](const Tensors& t) { return t[0].select(1, 2); }, second},
      {"unbind", {{x, third}}, [](const Tensors& t) { return t[0].unbind(1)[1]; }, second},
      {"narrow", {{x, third}}, [](const Tensors& t) { return t[0].narrow(1, 1, 2); }, third},
      {"halves exchanged",
       {{numbers({2, 4, 3, 6}), second}},
       [](const Tensors& t) {
         const auto halves = t[0].chunk(2, -1);
         return at::cat({-halves[1], halves[0]}, -1);
       },
       second},
      {"cat of blocks",
       {{numbers({2, 8}), second}, {numbers({2, 8}, 1), second}},
       [](const Tensors& t) {
         return at::cat({t[0], t[1]}, 1);
       },
       Division{.dim = 1, .blocks = 2}},
      {"cat with a whole tensor",
       {{numbers({2, 8}), second}, {numbers({3, 8}, 1)}},
       [](const Tensors& t) {
         return at::cat({t[0], t[1]}, 0);
       },
       second},
      {"stack",
       {{numbers({2, 8}), second}, {numbers({2, 8}, 1), second}},
       [](const Tensors& t) {
         return at::stack({t[0], t[1]}, 0);
       },
       third},
  });
}

TEST_CASE("products are divided by columns, rows, heads and batches") {
  const auto x = numbers({2, 3, 8}), w = numbers({12, 8}, 1), bias = numbers({12}, 2);
  const auto heads = numbers({2, 4, 3, 6}), keys = numbers({2, 4, 6, 5}, 3);
  compare_all({
      {"columns",
       {{x}, {w, first}, {bias, first}},
       [](const Tensors& t) { return at::linear(t[0], t[1], t[2]); },
       third},
      {"rows", {{x, third}, {w, second}, {bias}}, [](const Tensors& t) { return at::linear(t[0], t[1], t[2]); }},
      {"rows of a whole tensor", {{x}, {w, second}}, [](const Tensors& t) { return at::linear(t[0], t[1]); }},
      {"whole weight",
       {{numbers({3, 4, 8}), second}, {w}, {bias}},
       [](const Tensors& t) { return at::linear(t[0], t[1], t[2]); },
       second},
      {"as nn::Linear",
       {{x}, {w, first}, {bias, first}},
       [](const Tensors& t) {
         auto y = t[0].matmul(t[1].t());
         y += t[2];
         return y;
       },
       third},
      {"as nn::Linear, rows",
       {{x, third}, {w, second}, {bias}},
       [](const Tensors& t) {
         auto y = t[0].matmul(t[1].t());
         y += t[2];
         return y;
       }},
      {"addmm by columns",
       {{bias, first}, {numbers({5, 8})}, {w, first}},
       [](const Tensors& t) { return at::addmm(t[0], t[1], t[2].t()); },
       second},
      {"addmm by rows",
       {{bias}, {numbers({5, 8}), second}, {w, second}},
       [](const Tensors& t) { return at::addmm(t[0], t[1], t[2].t()); }},
      {"addmm with factors",
       {{bias, first}, {numbers({5, 8})}, {w, first}},
       [](const Tensors& t) { return at::addmm(t[0], t[1], t[2].t(), 0.5, 2); },
       second},
      {"heads", {{heads, second}, {keys, second}}, [](const Tensors& t) { return t[0].matmul(t[1]); }, second},
      {"heads with a whole tensor",
       {{heads, second}, {keys}},
       [](const Tensors& t) { return t[0].matmul(t[1]); },
       second},
      {"bmm",
       {{numbers({4, 3, 6}), first}, {numbers({4, 6, 5}, 1), first}},
       [](const Tensors& t) { return at::bmm(t[0], t[1]); },
       first},
      {"baddbmm",
       {{numbers({4, 3, 5}, 2), first}, {numbers({4, 3, 6}), first}, {numbers({4, 6, 5}, 1), first}},
       [](const Tensors& t) { return at::baddbmm(t[0], t[1], t[2], 0.5, 3); },
       first},
      {"baddbmm that does not read its first tensor",
       {{at::full({4, 3, 5}, std::nan("")), first}, {numbers({4, 3, 6}), first}, {numbers({4, 6, 5}, 1), first}},
       [](const Tensors& t) { return at::baddbmm(t[0].detach(), t[1], t[2], 0, 3); },
       first},
      {"einsum",
       {{numbers({2, 3, 4, 6}), third}, {numbers({2, 5, 4, 6}, 1), third}},
       [](const Tensors& t) {
         return at::einsum("bthd,bshd->bhts", {t[0], t[1]});
       },
       second},
  });
}

TEST_CASE("attention and norms act on whole heads") {
  const auto q = numbers({2, 4, 3, 6}), k = numbers({2, 4, 3, 6}, 1), v = numbers({2, 4, 3, 6}, 2);
  const auto mask = numbers({1, 1, 3, 3}, 3), one_head = numbers({2, 1, 3, 6}, 1);
  const auto attend = [](const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
    return at::scaled_dot_product_attention(q, k, v, {}, 0, true);
  };
  compare_all({
      {"attention",
       {{q, second}, {k, second}, {v, second}},
       [&](const Tensors& t) { return attend(t[0], t[1], t[2]); },
       second},
      {"attention with a mask",
       {{q, second}, {k, second}, {v, second}, {mask}},
       [](const Tensors& t) { return at::scaled_dot_product_attention(t[0], t[1], t[2], t[3]); },
       second},
      {"whole keys", {{q, second}, {k}, {v}}, [&](const Tensors& t) { return attend(t[0], t[1], t[2]); }, second},
      {"shared key head",
       {{q, second}, {one_head}, {one_head}},
       [](const Tensors& t) {
         return at::scaled_dot_product_attention(t[0], t[1], t[2], {}, 0, false, std::nullopt, true);
       },
       second},
      {"two whole key heads",
       {{q, second}, {numbers({2, 2, 3, 6}, 1)}, {numbers({2, 2, 3, 6}, 2)}},
       [](const Tensors& t) {
         return at::scaled_dot_product_attention(t[0], t[1], t[2], {}, 0, false, std::nullopt, true);
       },
       second},
      {"attention by hand",
       {{q, second}, {k, second}, {v, second}},
       [](const Tensors& t) {
         auto scores = t[0].matmul(t[1].transpose(-2, -1)) / std::sqrt(6.0);
         scores = scores.masked_fill(at::ones({3, 3}, at::kBool).triu(1), -1e9);
         return at::softmax(scores, -1).matmul(t[2]);
       },
       second},
      {"layer_norm of heads",
       {{q, second}, {numbers({6}, 1)}, {numbers({6}, 2)}},
       [](const Tensors& t) { return at::layer_norm(t[0], {6}, t[1], t[2]); },
       second},
      {"rms_norm of heads",
       {{q, second}, {numbers({6}, 1)}},
       [](const Tensors& t) { return at::rms_norm(t[0], {6}, t[1], 1e-6); },
       second},
      {"layer_norm over the division gathers",
       {{numbers({3, 8}), second}},
       [](const Tensors& t) { return at::layer_norm(t[0], {8}); },
       std::nullopt,
       1},
      {"softmax over the division",
       {{numbers({3, 8}), second}},
       [](const Tensors& t) { return at::softmax(t[0] * 3, -1); },
       second},
      {"log_softmax over the division",
       {{numbers({3, 8}), second}},
       [](const Tensors& t) { return at::log_softmax(t[0] * 3, 1); },
       second},
      {"rms norm by hand",
       {{q, second}, {numbers({6}, 1)}},
       [](const Tensors& t) { return t[0] * at::rsqrt(t[0].pow(2).mean(-1, true) + 1e-6) * t[1]; },
       second},
  });
}

TEST_CASE("reductions over the division are sums over the ranks") {
  const auto x = numbers({3, 8, 2});
  compare_all({
      {"sum", {{x, second}}, [](const Tensors& t) { return t[0].sum(); }},
      {"sum of rows", {{x, second}}, [](const Tensors& t) { return t[0].sum(1); }},
      {"sum of rows that stays", {{x, second}}, [](const Tensors& t) { return t[0].sum({1}, true); }},
      {"sum of others",
       {{x, second}},
       [](const Tensors& t) {
         return t[0].sum({0, -1});
       },
       first},
      {"mean", {{x, second}}, [](const Tensors& t) { return t[0].mean(); }},
      {"mean of rows",
       {{x, second}},
       [](const Tensors& t) {
         return t[0].mean({1, 2});
       }},
      {"mean of others", {{x, second}}, [](const Tensors& t) { return t[0].mean(-1); }, second},
      {"amax", {{x, second}}, [](const Tensors& t) { return t[0].amax({0}); }, first},
      {"var", {{x, second}}, [](const Tensors& t) { return t[0].var({0}, true, false); }, first},
      {"max.dim", {{x, second}}, [](const Tensors& t) { return std::get<0>(t[0].max(2)); }, second},
      {"cumsum", {{x, second}}, [](const Tensors& t) { return t[0].cumsum(0); }, second},
      {"norm without a rule",
       {{x, second}},
       [](const Tensors& t) { return t[0].std({1}, true, false); },
       std::nullopt,
       1},
  });
}

TEST_CASE("embeddings and losses do not gather the vocabulary") {
  const auto table = numbers({16, 6}), scores = numbers({5, 16}, 1);
  const auto ids = at::tensor({0, 3, 7, 15, 8}, at::kLong), ignored = at::tensor({0, -100, 7, 15, -100}, at::kLong);
  const auto cross = [](const at::Tensor& x, const at::Tensor& target, std::int64_t reduction, double smoothing) {
    return at::cross_entropy_loss(x, target, {}, reduction, -100, smoothing);
  };
  compare_all({
      {"embedding", {{table, first}, {ids}}, [](const Tensors& t) { return at::embedding(t[0], t[1]); }},
      {"embedding with padding",
       {{table, first}, {ids}},
       [](const Tensors& t) {
         return at::embedding(t[0], t[1].view({5, 1}), 7);
       }},
      {"embedding by width",
       {{numbers({16, 8}), second}, {ids}},
       [](const Tensors& t) { return at::embedding(t[0], t[1]); },
       second},
      {"cross entropy",
       {{scores, second}, {ids}},
       [&](const Tensors& t) { return cross(t[0] * 4, t[1], at::Reduction::Mean, 0); }},
      {"cross entropy of each",
       {{scores, second}, {ignored}},
       [&](const Tensors& t) { return cross(t[0], t[1], at::Reduction::None, 0); }},
      {"cross entropy with smoothing",
       {{scores, second}, {ignored}},
       [&](const Tensors& t) { return cross(t[0], t[1], at::Reduction::Sum, 0.1); }},
      {"cross entropy of sequences",
       {{numbers({2, 3, 16}), third}, {at::tensor({0, 5, 9, 11, 15, 2}, at::kLong)}},
       [&](const Tensors& t) {
         return cross(t[0].view({-1, 16}), t[1], at::Reduction::Mean, 0);
       }},
      {"cross entropy of images",
       {{numbers({2, 8, 3}), second}, {at::tensor({0, 5, 7, 1, 3, 2}, at::kLong)}},
       [&](const Tensors& t) {
         return cross(t[0], t[1].view({2, 3}), at::Reduction::Mean, 0.2);
       }},
      {"nll_loss of log_softmax",
       {{scores, second}, {ignored}},
       [](const Tensors& t) { return at::nll_loss_nd(at::log_softmax(t[0], 1), t[1], {}, at::Reduction::Mean, -100); }},
      {"one score of large ones",
       {{scores * 100, second}, {ids}},
       [&](const Tensors& t) { return cross(t[0], t[1], at::Reduction::Mean, 0); }},
      {"cross entropy with class weights gathers",
       {{scores, second}, {ids}, {numbers({16}).abs()}},
       [](const Tensors& t) { return at::cross_entropy_loss(t[0], t[1], t[2].detach()); },
       std::nullopt,
       1},
  });
}

TEST_CASE("tensors of a vocabulary are never exchanged by a loss") {
  const TensorGroup group;
  const auto scores = group.divided(numbers({5, 16}), second);
  const auto before = group.ranks->traffic();
  at::cross_entropy_loss(scores * 1, at::tensor({0, 3, 7, 15, 8}, at::kLong)).backward();
  const auto& after = group.ranks->traffic();
  CHECK(after.gathers == before.gathers);
  CHECK(after.sum_bytes - before.sum_bytes <= 4 * 5 * 4);  // the maximum, and two numbers a row
}

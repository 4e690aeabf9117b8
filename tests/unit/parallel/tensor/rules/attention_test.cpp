#include <cmath>

#include "unit/parallel/tensor/rules/rule_cases.hpp"

using namespace hortator;
using namespace hortator::test;

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
      {"keys of a divided sequence",
       {{numbers({2, 4, 8, 6}), second}, {numbers({2, 2, 8, 6}, 1), third}, {numbers({2, 2, 8, 6}, 2), third}},
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

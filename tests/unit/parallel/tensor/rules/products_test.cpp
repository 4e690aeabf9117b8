#include <cmath>

#include "unit/parallel/tensor/rules/rule_cases.hpp"

using namespace hortator;
using namespace hortator::test;

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

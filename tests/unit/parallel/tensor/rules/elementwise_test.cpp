#include "unit/parallel/tensor/rules/rule_cases.hpp"

using namespace hortator;
using namespace hortator::test;

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

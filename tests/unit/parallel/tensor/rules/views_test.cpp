#include "unit/parallel/tensor/rules/rule_cases.hpp"

using namespace hortator;
using namespace hortator::test;

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

#include "unit/parallel/tensor/rules/rule_cases.hpp"

using namespace hortator;
using namespace hortator::test;

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
      {"index_select",
       {{x, third}},
       [](const Tensors& t) {
         return t[0].index_select(1, at::tensor({2, 0, 2}));
       },
       third},
      {"index_select of the divided dimension",
       {{x, third}},
       [](const Tensors& t) {
         return t[0].index_select(2, at::tensor({23, 0}));
       },
       {},
       1},
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

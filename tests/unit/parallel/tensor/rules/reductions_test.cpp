#include "unit/parallel/tensor/rules/rule_cases.hpp"

using namespace hortator;
using namespace hortator::test;

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

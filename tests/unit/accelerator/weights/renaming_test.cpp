#include <hortator/bigmodel/weights.hpp>
#include <hortator/error.hpp>

#include "support/catch.hpp"

using namespace hortator;

TEST_CASE("rules change the first parts of names") {
  const Renaming drop{{"model", ""}};
  CHECK(drop("model.norm.weight") == "norm.weight");
  CHECK(drop("modeller.weight") == "modeller.weight");
  CHECK(drop("a.model.weight") == "a.model.weight");
  const Renaming add{{"", "encoder"}};
  CHECK(add("norm.weight") == "encoder.norm.weight");
  const Renaming change{{"layers.*.self_attn.q_proj", "blocks.*.query"}};
  CHECK(change("layers.11.self_attn.q_proj.bias") == "blocks.11.query.bias");
  CHECK(change("layers.11.self_attn.k_proj.bias") == "layers.11.self_attn.k_proj.bias");
  CHECK(change("layers.11") == "layers.11");
  const Renaming two{{"*.*", "x.*.y.*"}};
  CHECK(two("a.b.c") == "x.a.y.b.c");
  CHECK(Renaming()("a.b") == "a.b");
}

TEST_CASE("two stars match any number of leading parts") {
  const Renaming gamma{{"**.gamma", "**.weight"}};
  CHECK(gamma("bert.layer.0.gamma") == "bert.layer.0.weight");
  CHECK(gamma("gamma") == "weight");
  CHECK(gamma("a.gamma.gamma") == "a.weight.gamma");
  CHECK(gamma("a.gammas") == "a.gammas");
  const Renaming inner{{"**.attn.*.w", "**.attention.*.weight"}};
  CHECK(inner("h.3.attn.0.w") == "h.3.attention.0.weight");
}

TEST_CASE("rules are applied one after the other, and can be reversed") {
  const Renaming rename{{"model", ""}, {"layers", "blocks"}, {"**.gamma", "**.weight"}};
  CHECK(rename("model.layers.0.gamma") == "blocks.0.weight");
  const Renaming prefix{{"model", ""}, {"layers.*.q", "blocks.*.query"}};
  CHECK(prefix.reversed()(prefix("model.layers.7.q.bias")) == "model.layers.7.q.bias");
}

TEST_CASE("both sides of a rule need the same stars") {
  for (const auto& [from, to] : {std::pair("a.*", "b"), {"a", "b.*"}, {"*.*", "*"}, {"**.a", "*.a"}, {"*.a", "**.a"}})
    CHECK_THROWS_WITH((Renaming{{from, to}}),
                      ContainsSubstring(from) && ContainsSubstring("the same stars on both sides"));
  CHECK_THROWS_AS((Renaming{{"a.**", "a.**"}}), UsageError);
  CHECK_THROWS_AS((Renaming{{"**.**", "**.**"}}), UsageError);
}

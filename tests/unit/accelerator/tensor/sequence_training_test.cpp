// Training with activations that are divided along the sequence, and with padded vocabularies, against one rank.
#include <hortator/error.hpp>

#include "unit/accelerator/tensor/tensor_course.hpp"

using namespace hortator;
using test::check_same;
using test::train;
using test::train_alone;

namespace {

constexpr std::int64_t divisible = 8;  // tokens of a sequence, by 2 and by 4 ranks

/// Every arrangement of all ranks in which a model is divided.
std::vector<AcceleratorOptions> divided_options() {
  std::vector<AcceleratorOptions> all;
  const int ranks = State().num_processes();
  for (const int tensor : {2, 4})
    if (ranks % tensor == 0) all.push_back({.parallel = {.tensor = tensor}});
  return all;
}

}  // namespace

TEST_CASE("fifty steps with divided sequences follow those of one rank") {
  const auto family = GENERATE(std::string("llama"), std::string("qwen3"), std::string("gpt2"), std::string("bert"));
  INFO(family);
  const auto expected = train_alone({.family = family, .length = divisible});
  for (auto options : divided_options()) {
    INFO("tensor " << *options.parallel.tensor);
    options.parallel.sequence = options.parallel.strict = true;
    const auto found = train({.family = family, .options = options, .length = divisible});
    check_same(found.losses, expected.losses);
    check_same({found.norms.front()}, {expected.norms.front()});
  }
}

TEST_CASE("fifty steps with a vocabulary that ranks cannot divide equally follow those of one rank") {
  const auto expected = train_alone({.family = "llama of 43 tokens", .length = divisible});
  for (auto options : divided_options()) {
    for (const bool sequence : {false, true}) {
      INFO("tensor " << *options.parallel.tensor << ", sequence " << sequence);
      options.parallel.sequence = sequence;
      options.parallel.strict = true;
      const auto found = train({.family = "llama of 43 tokens", .options = options, .length = divisible});
      check_same(found.losses, expected.losses);
    }
  }
}

TEST_CASE("in training a sequence must have equal parts, and generated texts may have any length") {
  for (auto options : divided_options()) {
    options.parallel.sequence = true;
    Accelerator accelerator(options);
    auto net = test::tensor_model("llama"), whole = test::tensor_model("llama");
    auto model = accelerator.prepare(*net);
    const auto ids = at::arange(7, at::kLong).view({1, 7});
    CHECK_THROWS_WITH(model(models::ModelInputs{.input_ids = ids}), ContainsSubstring("A sequence of 7 tokens"));
    const at::NoGradGuard no_grad;
    const auto logits = model(models::ModelInputs{.input_ids = ids}).logits.select(1, 6).argmax(-1);
    CHECK(at::equal(logits, whole->forward({.input_ids = ids}).logits.select(1, 6).argmax(-1)));
  }
}

// Training with a model that is divided among ranks, against the same on one rank.
#include <torch/optim/lbfgs.h>

#include <hortator/error.hpp>
#include <vector>

#include "unit/accelerator/tensor/tensor_course.hpp"

using namespace hortator;
using test::check_same;
using test::tensors_in;
using test::train;
using test::train_alone;

namespace {

/// Every arrangement of all ranks in which a model is divided.
std::vector<AcceleratorOptions> divided_options() {
  std::vector<AcceleratorOptions> all;
  const int ranks = State().num_processes();
  for (const int tensor : {2, 4})
    if (ranks % tensor == 0) all.push_back({.parallel = {.tensor = tensor}});
  return all;
}

/// Whether a checkpoint's tensor is a gradient's or moment's of a bias of keys, which is rounding error only.
bool is_rounding(const std::string& name) {
  return name.find("attn.c_attn.bias") != std::string::npos || name.find("self.key.bias") != std::string::npos;
}

constexpr std::int64_t divisible = 8;  // tokens of a sequence, by 2 and by 4 ranks

}  // namespace

TEST_CASE("fifty steps of divided models follow those of one rank") {
  const auto family =
      GENERATE(as<std::string>(), "llama", "mistral", "qwen2", "qwen3", "gpt2", "bert", "distilbert", "vit");
  INFO(family);
  const auto expected = train_alone({.family = family});
  for (const auto& options : divided_options()) {
    INFO("tensor " << *options.parallel.tensor);
    auto strict = options;
    strict.parallel.strict = true;
    const auto found = train({.family = family, .options = strict});
    check_same(found.losses, expected.losses);
    check_same({found.norms.front()}, {expected.norms.front()});
  }
}

TEST_CASE("recomputation of divided layers changes nothing") {
  for (auto options : divided_options()) {
    for (const auto* family : {"llama", "gpt2"}) {
      for (const bool sequence : {false, true}) {
        INFO(family << ", sequence " << sequence);
        options.parallel.sequence = sequence;
        const auto expected = train({.family = family, .options = options, .steps = 5, .length = divisible});
        const auto found =
            train({.family = family, .options = options, .steps = 5, .length = divisible, .recomputes = true});
        CHECK(found.losses == expected.losses);
        CHECK(found.norms == expected.norms);
      }
    }
  }
}

TEST_CASE("mixed precision trains divided models as it trains whole ones") {
  const auto expected = train_alone(
      {.family = "llama", .options = {.mixed_precision = Precision::bf16}, .steps = 10, .length = divisible});
  for (auto options : divided_options()) {
    options.mixed_precision = Precision::bf16;
    for (const bool sequence : {false, true}) {
      options.parallel.sequence = sequence;
      const auto found = train({.family = "llama", .options = options, .steps = 10, .length = divisible});
      check_same(found.losses, expected.losses, 0.03);  // bf16 has 8 bits
    }
  }
}

TEST_CASE("checkpoints of divided models hold whole parameters and moments, and any mesh resumes from them") {
  const State state;
  const test::Folder folder(state, "tensor_checkpoints");
  for (const auto* family : {"llama", "gpt2", "llama of 43 tokens"}) {
    INFO(family);
    const auto alone = folder.path() / (std::string(family) + "-alone");
    train_alone({.family = family, .steps = 3, .save = alone});
    const auto expected = tensors_in(alone);
    const auto next_expected = train_alone({.family = family, .first = 3, .steps = 3, .load = alone});
    for (const auto& options : divided_options()) {
      INFO("tensor " << *options.parallel.tensor);
      const auto name = std::string(family) + "-" + std::to_string(*options.parallel.tensor);
      const auto divided = folder.path() / name, again = folder.path() / (name + "-again");
      train({.family = family, .options = options, .steps = 3, .save = divided});
      const auto found = tensors_in(divided);
      REQUIRE(found.size() == expected.size());
      for (const auto& [tensor, values] : expected) {
        INFO(tensor);
        REQUIRE(found.at(tensor).sizes() == values.sizes());
        if (!is_rounding(tensor)) CHECK(at::allclose(found.at(tensor), values, 1e-4, 1e-5));
      }
      // One rank reads what the divided model wrote, and writes the same bytes, and vice versa.
      train_alone({.family = family, .steps = 0, .load = divided, .save = again});
      for (const auto& [tensor, values] : tensors_in(again)) {
        INFO(tensor);
        CHECK(at::equal(values, found.at(tensor)));
      }
      const auto back = folder.path() / (name + "-back");
      train({.family = family, .options = options, .steps = 0, .load = alone, .save = back});
      for (const auto& [tensor, values] : tensors_in(back)) {
        INFO(tensor);
        CHECK(at::equal(values, expected.at(tensor)));
      }
      check_same(train({.family = family, .options = options, .first = 3, .steps = 3, .load = alone}).losses,
                 next_expected.losses);
    }
  }
}

TEST_CASE("beside an axis context one group of tensor ranks writes a checkpoint") {
  const State state;
  if (state.num_processes() != 4) return;
  const test::Folder folder(state, "tensor_context");
  const auto alone = folder.path() / "alone", divided = folder.path() / "divided";
  train_alone({.steps = 1, .save = alone});
  train({.options = {.parallel = {.tensor = 2, .context = 2}}, .steps = 0, .load = alone, .save = divided});
  const auto expected = tensors_in(alone);
  for (const auto& [tensor, values] : tensors_in(divided)) {
    INFO(tensor);
    CHECK(at::equal(values, expected.at(tensor)));
  }
}

TEST_CASE("exports of divided models are whole") {
  const State state;
  const test::Folder folder(state, "tensor_export");
  for (const auto& options : divided_options()) {
    const auto saved = folder.path() / ("model-" + std::to_string(*options.parallel.tensor));
    Accelerator accelerator(options);
    auto net = test::tensor_model("gpt2"), whole = test::tensor_model("gpt2");
    auto model = accelerator.prepare(*net);
    const auto parameters = whole->named_parameters();
    const auto dict = accelerator.get_state_dict(model);
    for (const auto& item : parameters) {
      if (accelerator.is_main_process()) CHECK(at::equal(dict.get<at::Tensor>(item.key()), item.value()));
    }
    {
      const auto summoned = accelerator.summon_full_parameters(model);
      for (const auto& item : net->named_parameters()) CHECK(at::equal(item.value(), parameters[item.key()]));
    }
    accelerator.save_model(model, saved);
    auto loaded = test::tensor_model("gpt2");
    {
      const at::NoGradGuard no_grad;
      for (const auto& parameter : loaded->parameters()) parameter.zero_();
    }
    accelerator.load_checkpoint_in_model(*loaded, saved);
    for (const auto& item : loaded->named_parameters()) CHECK(at::equal(item.value(), parameters[item.key()]));
    const auto before = test::token_loss(model, test::TokenRows(0, 0, 1)).item<double>();
    accelerator.load_checkpoint_in_model(model, saved);
    CHECK(test::token_loss(model, test::TokenRows(0, 0, 1)).item<double>() == before);
  }
}

TEST_CASE("a module has whole parameters again when its Accelerator has ended") {
  for (const auto& options : divided_options()) {
    auto net = test::tensor_model("llama"), whole = test::tensor_model("llama");
    {
      Accelerator accelerator(options);
      auto model = accelerator.prepare(*net);
      accelerator.backward(test::token_loss(model, test::TokenRows(0, 0, 1)));
    }
    const auto parameters = whole->named_parameters();
    for (const auto& item : net->named_parameters()) CHECK(at::equal(item.value(), parameters[item.key()]));
  }
}

TEST_CASE("logits of a divided vocabulary can be gathered for metrics") {
  for (const auto& options : divided_options()) {
    Accelerator accelerator(options);
    auto net = test::tensor_model("llama"), whole = test::tensor_model("llama");
    auto model = accelerator.prepare(*net);
    const at::NoGradGuard no_grad;
    const test::TokenRows rows(0, 0, 1);
    const auto logits = accelerator.gather(model(models::ModelInputs{.input_ids = rows.ids}).logits);
    const auto expected = whole->forward({.input_ids = rows.ids}).logits;
    CHECK(at::allclose(logits.narrow(0, 0, expected.size(0)), expected, 1e-4, 1e-5));
  }
}

TEST_CASE("what cannot be divided is refused on all ranks, with the reason") {
  for (auto options : divided_options()) {
    {
      Accelerator accelerator(options);
      test::Net net;
      CHECK_THROWS_WITH(accelerator.prepare(net), ContainsSubstring("has no plan"));
    }
    {
      auto wrong = options;
      wrong.parallel.plan = {{"no.such.layer", TensorDivision::columns}};
      Accelerator accelerator(wrong);
      auto net = test::tensor_model("llama");
      CHECK_THROWS_WITH(accelerator.prepare(*net), ContainsSubstring("fits no parameter"));
    }
  }
  const State state;
  if (state.num_processes() == 1) CHECK(divided_options().empty());
}

TEST_CASE("what sees only the parts of a divided model is refused") {
  for (const auto& options : divided_options()) {
    Accelerator accelerator(options);
    auto net = test::tensor_model("llama");
    torch::optim::LBFGS lbfgs(net->parameters(), torch::optim::LBFGSOptions(0.1));
    auto [model, optimizer] = accelerator.prepare(*net, lbfgs);
    const auto loss = [&, &model = model] { return test::token_loss(model, test::TokenRows(0, 0, 1)); };
    CHECK_THROWS_WITH(optimizer.step(loss), ContainsSubstring("parallel.tensor"));
    const test::OwnFolder folder("divided");
    CHECK_THROWS_WITH(models::save_pretrained(*net, folder.path), ContainsSubstring("is divided among ranks"));
  }
}

TEST_CASE("what rounding takes from the gradients of divided parameters is added to the next") {
  if (State().num_processes() < 4) return;  // two ranks that average parts
  const auto expected = train_alone({.family = "llama", .steps = 10});
  AcceleratorOptions options{.parallel = {.tensor = 2}};
  options.ddp.comm_hook = DDPCommunicationHookType::bf16;
  options.ddp.error_feedback = true;
  check_same(train({.family = "llama", .options = options, .steps = 10}).losses, expected.losses, 0.02);
}

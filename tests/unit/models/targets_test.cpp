// The loss that a language model computes in place of its logits.
#include <filesystem>
#include <fstream>
#include <hortator/error.hpp>
#include <nlohmann/json.hpp>
#include <set>

#include "cases.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"

using namespace hortator;

namespace {

using Gradients = std::map<std::string, at::Tensor>;

Gradients gradients_of(const models::PretrainedModel& model) {
  Gradients found;
  for (const auto& parameter : model.named_parameters()) {
    found[parameter.key()] = parameter.value().grad().defined() ? parameter.value().grad().clone() : at::Tensor();
    parameter.value().mutable_grad().reset();
  }
  return found;
}

void check_equal(const Gradients& found, const Gradients& expected) {
  for (const auto& [name, gradient] : expected) {
    INFO(name);
    REQUIRE(found.at(name).defined() == gradient.defined());
    if (gradient.defined())
      CHECK((found.at(name) - gradient).norm().item<double>() <= 1e-5 * (1 + gradient.norm().item<double>()));
  }
}

/// The config.json of a case, of another class of the same family, with random weights.
std::shared_ptr<models::PretrainedModel> of_class(const std::filesystem::path& folder,
                                                  const std::string& architecture) {
  std::ifstream file(folder / "config.json");
  auto config = nlohmann::json::parse(file);
  config["architectures"] = {architecture};
  const test::OwnFolder made("targets-" + architecture);
  std::filesystem::create_directory(made.path);
  std::ofstream(made.path / "config.json") << config.dump();
  at::manual_seed(3);
  return models::from_config(made.path);
}

void check_loss(models::PretrainedModel& model) {
  INFO(model.config().architecture);
  model.eval();
  const auto count = model.config().vocabulary;
  const auto ids = at::randint(count, {3, 7}, at::kLong);
  auto targets = at::randint(count, {3, 7}, at::kLong);
  targets.narrow(1, 0, 2).fill_(-100);
  const auto logits = model.forward({.input_ids = ids}).logits;
  const auto expected = at::cross_entropy_loss(logits.flatten(0, 1), targets.flatten(), {}, at::Reduction::Sum);
  expected.backward();
  const auto expected_gradients = gradients_of(model);
  const auto outputs = model.forward({.input_ids = ids, .targets = targets});
  outputs.loss_sum.backward();
  CHECK_FALSE(outputs.logits.defined());
  CHECK(at::allclose(outputs.loss_sum, expected, 1e-5, 1e-5));
  check_equal(gradients_of(model), expected_gradients);
}

}  // namespace

TEST_CASE("every language model computes the loss of targets, with the gradients of the loss of its logits") {
  std::set<std::string> seen;
  for (const auto& one : test::model_cases()) {
    const auto family = one.folder.filename().string();
    const std::string masked = family == "bert-0"         ? "BertForMaskedLM"
                               : family == "distilbert-0" ? "DistilBertForMaskedLM"
                                                          : "";
    const auto model = masked.empty() ? models::from_pretrained(one.folder) : of_class(one.folder, masked);
    if (!masked.empty() || model->config().is_causal) {
      check_loss(*model);
      seen.insert(model->config().architecture);
    }
  }
  for (const auto* expected : {"LlamaForCausalLM", "GPT2LMHeadModel", "BertForMaskedLM", "DistilBertForMaskedLM"}) {
    INFO(expected);
    CHECK(seen.contains(expected));
  }
}

TEST_CASE("targets that a model has no use for, and those of its last tokens, are refused") {
  const auto targets = at::zeros({1, 4}, at::kLong);
  std::size_t refused = 0;
  for (const auto& one : test::model_cases()) {
    const auto model = models::from_pretrained(one.folder);
    auto inputs = one.inputs();
    inputs.targets = targets;
    INFO(model->config().architecture);
    if (model->config().is_causal) {
      inputs.last = 2;
      CHECK_THROWS_WITH(model->forward(inputs), ContainsSubstring("both last and targets"));
    } else if (model->config().architecture.find("MaskedLM") == std::string::npos) {
      CHECK_THROWS_WITH(model->forward(inputs), ContainsSubstring("does not predict tokens"));
      ++refused;
    }
  }
  CHECK(refused >= 2);
}

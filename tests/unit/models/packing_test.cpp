// Packed documents of causal models, and layers that are recomputed.
#include <hortator/datasets/packed_windows.hpp>
#include <hortator/error.hpp>
#include <hortator/models/key_value_cache.hpp>
#include <hortator/training/recompute_layers.hpp>
#include <set>

#include "cases.hpp"
#include "support/catch.hpp"

using namespace hortator;

namespace {

std::vector<test::ModelCase> causal_cases() {
  std::vector<test::ModelCase> causal;
  for (auto& one : test::model_cases()) {
    if (models::from_pretrained(one.folder)->config().is_causal) causal.push_back(std::move(one));
  }
  return causal;
}

std::vector<at::Tensor> gradients_of(models::PretrainedModel& model, const models::ModelInputs& inputs) {
  model.zero_grad();
  model.train();
  at::manual_seed(5);  // of dropout
  const auto outputs = model.forward(inputs);
  (outputs.logits.defined() ? outputs.logits : outputs.last_hidden_state).square().sum().backward();
  std::vector<at::Tensor> gradients;
  for (const auto& parameter : model.parameters())
    if (parameter.grad().defined()) gradients.push_back(parameter.grad().clone());
  return gradients;
}

/// The model, or the one within it, that has the layers.
std::shared_ptr<models::PretrainedModel> body_of(models::PretrainedModel& model) {
  for (const auto& module : model.modules())
    if (auto part = std::dynamic_pointer_cast<models::PretrainedModel>(module);
        part && !part->classes_of_layers().empty())
      return part;
  return nullptr;
}

}  // namespace

TEST_CASE("a packed document has the logits that it has alone") {
  const auto cases = causal_cases();
  REQUIRE(cases.size() >= 4);
  for (const auto& one : cases) {
    INFO(one.folder.string());
    const auto model = models::from_pretrained(one.folder);
    const at::NoGradGuard no_grad;
    std::vector<at::Tensor> documents;
    at::manual_seed(1);
    for (const std::int64_t length : {3, 4, 1, 5}) documents.push_back(at::randint(3, 60, {length}, at::kLong));
    const PackedWindows windows(documents, {.context = 13});
    const auto batch = windows.get_batch(std::vector<std::int64_t>{0});
    const auto packed =
        model->forward({.input_ids = batch.ids, .position_ids = batch.positions, .document_ids = batch.documents});
    const auto mixed = model->forward({.input_ids = batch.ids});
    std::int64_t begin = 0;
    for (const auto& document : documents) {
      const auto alone = model->forward({.input_ids = document.unsqueeze(0)}).logits[0];
      const auto within = packed.logits[0].narrow(0, begin, document.size(0));
      CHECK((alone - within).abs().max().item<double>() < 1e-4);
      if (begin > 0)
        CHECK((alone - mixed.logits[0].narrow(0, begin, document.size(0))).abs().max().item<double>() > 1e-3);
      begin += document.size(0);
    }
  }
}

TEST_CASE("document numbers that do not fit are refused") {
  const auto model = models::from_pretrained(causal_cases().front().folder);
  const auto ids = at::ones({1, 4}, at::kLong);
  CHECK_THROWS_WITH(model->forward({.input_ids = ids, .document_ids = at::ones({1, 3}, at::kLong)}),
                    ContainsSubstring("document_ids") && ContainsSubstring("[batch, 4]"));
  const at::NoGradGuard no_grad;
  models::KeyValueCache cache;
  static_cast<void>(model->forward({.input_ids = ids, .cache = &cache}));
  CHECK_THROWS_WITH(model->forward({.input_ids = ids, .document_ids = ids, .cache = &cache}),
                    ContainsSubstring("without a cache"));
}

TEST_CASE("recomputed layers give the same gradients and buffers, bit for bit") {
  for (const auto& one : test::model_cases()) {
    INFO(one.folder.string());
    const auto plain_model = models::from_pretrained(one.folder), model = models::from_pretrained(one.folder);
    const auto inputs = one.inputs();
    const auto plain = gradients_of(*plain_model, inputs);
    model->set_recompute_layers(true);
    CHECK(model->recomputes_layers());
    const auto recomputed = gradients_of(*model, inputs);
    REQUIRE(recomputed.size() == plain.size());
    for (std::size_t i = 0; i < plain.size(); ++i) CHECK(at::equal(plain[i], recomputed[i]));
    const auto buffers = model->buffers(), plain_buffers = plain_model->buffers();
    for (std::size_t i = 0; i < buffers.size(); ++i) CHECK(at::equal(buffers[i], plain_buffers[i]));
    model->set_recompute_layers(false);
    CHECK_FALSE(model->recomputes_layers());
  }
}

TEST_CASE("layers of every family are recomputed by the name of their class") {
  std::set<std::string> found;
  for (const auto& one : test::model_cases()) {
    auto model = models::from_pretrained(one.folder);
    INFO(model->config().architecture);
    const auto body = body_of(*model);
    const auto classes = body->classes_of_layers();
    REQUIRE(!classes.empty());
    const auto layers = body->names_of_layers();
    for (const auto& layer : layers) CHECK(body->named_modules().contains(layer));
    for (const auto& name : classes) {
      CHECK(recompute_layers(model, {.classes = {name}}) == std::ssize(layers));
      CHECK(body->recomputes_layers());
      model->set_recompute_layers(false);
    }
    CHECK(recompute_layers(model, {.names = {"*"}}) == std::ssize(layers));
    if (layers.size() > 1) {
      CHECK_THROWS_WITH(recompute_layers(model, {.names = {"*" + layers.front()}}),
                        ContainsSubstring("matches 1 of the " + std::to_string(layers.size()) + " layers"));
    }
    CHECK_THROWS_WITH(recompute_layers(model, {.classes = {"NoSuchLayer"}}), ContainsSubstring("'NoSuchLayer'"));
    found.insert(classes.front());
  }
  CHECK(found.size() >= 6);
}

// Inputs that a model cannot read are errors of ours, not of an operator within it.
#include <ATen/ATen.h>

#include <hortator/error.hpp>
#include <hortator/models/key_value_cache.hpp>
#include <hortator/models/pretrained.hpp>
#include <set>
#include <string>

#include "cases.hpp"
#include "support/catch.hpp"

using namespace hortator;

namespace {

std::string input_error(models::PretrainedModel& model, const models::ModelInputs& inputs) {
  try {
    model.forward(inputs);
  } catch (const UsageError& error) {
    return error.what();
  } catch (const std::exception& error) {
    return std::string("not ours: ") + error.what();
  }
  return "none";
}

at::Tensor ids_of(std::vector<std::int64_t> row) { return at::tensor(row, at::kLong).unsqueeze(0); }

}  // namespace

TEST_CASE("wrong inputs of every family are named") {
  std::set<std::string> with_positions;
  for (const auto& one : test::model_cases()) {
    const auto model = models::from_pretrained(one.folder);
    INFO(model->config().architecture);
    if (one.has("input.pixel_values")) {
      CHECK_THAT(input_error(*model, {}), ContainsSubstring("pixel_values is missing"));
      CHECK_THAT(input_error(*model, {.pixel_values = at::zeros({3, 8, 8})}),
                 ContainsSubstring("expected [batch, channels, height, width], got [3, 8, 8]"));
      continue;
    }
    const auto last = std::to_string(model->config().vocabulary - 1);
    CHECK_THAT(input_error(*model, {}), ContainsSubstring("input_ids is missing"));
    CHECK_THAT(input_error(*model, {.input_ids = at::zeros({3}, at::kLong)}),
               ContainsSubstring("[batch, time], got [3]"));
    CHECK_THAT(input_error(*model, {.input_ids = at::zeros({1, 0}, at::kLong)}), ContainsSubstring("got [1, 0]"));
    CHECK_THAT(input_error(*model, {.input_ids = at::zeros({1, 3})}),
               ContainsSubstring("expected whole numbers (int64), got Float"));
    CHECK_THAT(input_error(*model, {.input_ids = ids_of({3, 999'999})}),
               ContainsSubstring("input_ids: expected numbers from 0 to " + last + ", got 999999"));
    CHECK_THAT(input_error(*model, {.input_ids = ids_of({3, -1})}), ContainsSubstring("got -1"));
    CHECK(input_error(*model, {.input_ids = ids_of({3, 4}).to(at::kInt)}) == "none");
    const bool has_limit =
        model->config().has_learned_positions || model->config().architecture.find("Bert") != std::string::npos;
    const auto too_long = at::full({1, model->config().max_positions + 1}, 3, at::kLong);
    if (!has_limit) continue;
    with_positions.insert(model->config().architecture);
    CHECK_THAT(input_error(*model, {.input_ids = too_long}),
               ContainsSubstring("a text has " + std::to_string(too_long.size(1)) + " tokens"));
    CHECK_THAT(input_error(*model, {.input_ids = ids_of({3}), .position_ids = ids_of({model->config().max_positions})}),
               ContainsSubstring("position_ids: expected numbers from 0"));
  }
  CHECK(with_positions.size() >= 3);  // GPT-2, BERT and DistilBERT
}

TEST_CASE("tokens in the cache count for the limit of positions") {
  const at::NoGradGuard no_grad;
  for (const auto& one : test::model_cases()) {
    const auto model = models::from_pretrained(one.folder);
    if (!model->config().has_learned_positions || !model->config().is_causal) continue;
    models::KeyValueCache cache;
    const auto full = at::full({1, model->config().max_positions}, 3, at::kLong);
    CHECK(input_error(*model, {.input_ids = full, .cache = &cache}) == "none");
    CHECK_THAT(input_error(*model, {.input_ids = ids_of({3}), .cache = &cache}), ContainsSubstring("tokens"));
  }
}

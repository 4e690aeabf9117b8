#include "models/layers/model_inputs.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <hortator/error.hpp>
#include <optional>

#include "core/text/text.hpp"
#include "runtime/sequence/divided_sequence.hpp"

namespace hortator::models {
namespace {

template <typename Number>
std::optional<std::int64_t> wrong_number(const at::Tensor& numbers, std::int64_t rows) {
  const auto dense = numbers.contiguous();
  const auto* begin = dense.const_data_ptr<Number>();
  const auto* end = begin + dense.numel();
  const auto* wrong = std::find_if(begin, end, [&](Number one) { return one < 0 || one >= rows; });
  return wrong == end ? std::nullopt : std::optional<std::int64_t>(*wrong);
}

void require_whole_numbers(const at::Tensor& numbers, const char* name) {
  if (numbers.scalar_type() == at::kLong || numbers.scalar_type() == at::kInt) return;
  throw UsageError(
      {.what = text::concat(name, ": expected whole numbers (int64), got ", c10::toString(numbers.scalar_type())),
       .hint = "make the tensor with at::kLong"});
}

/// Throws for the first number that an embedding of `rows` rows does not have.
void require_rows(const at::Tensor& numbers, const char* name, std::int64_t rows, const char* hint) {
  if (!numbers.defined()) return;
  require_whole_numbers(numbers, name);
  if (!numbers.device().is_cpu()) return;
  const auto wrong = numbers.scalar_type() == at::kLong ? wrong_number<std::int64_t>(numbers, rows)
                                                        : wrong_number<std::int32_t>(numbers, rows);
  if (!wrong) return;
  throw UsageError({.what = text::concat(name, ": expected numbers from 0 to ", rows - 1, ", got ", *wrong),
                    .why = "the model has no others",
                    .hint = hint});
}

std::string shape_of(const at::Tensor& tensor) {
  return text::concat("[", text::join(tensor.sizes().vec(), ", "), "]");
}

void refuse_targets(const ModelInputs& inputs) {
  if (!inputs.targets.defined()) return;
  throw UsageError({.what = "ModelInputs::targets was set for a model that does not predict tokens",
                    .why = "only causal and masked language models compute a loss of tokens",
                    .hint = "compute the loss of its outputs"});
}

}  // namespace

ModelInputs without_targets(ModelInputs inputs) {
  inputs.targets.reset();
  return inputs;
}

void require_text_inputs(const ModelInputs& inputs, const EmbeddingRows& rows, std::int64_t past) {
  refuse_targets(inputs);
  const auto& ids = inputs.input_ids;
  if (!ids.defined())
    throw UsageError({.what = "input_ids is missing",
                      .why = "the model reads the numbers of tokens",
                      .hint = "set ModelInputs::input_ids"});
  if (ids.dim() != 2 || ids.size(1) == 0)
    throw UsageError({.what = text::concat("input_ids: expected [batch, time], got ", shape_of(ids)),
                      .hint = "a single text is a batch of one: unsqueeze(0)"});
  require_rows(ids, "input_ids", rows.tokens, "use the tokenizer of this model");
  require_rows(inputs.token_type_ids, "token_type_ids", rows.types > 0 ? rows.types : rows.tokens,
               "type_vocab_size of config.json is their number");
  if (rows.positions == 0) return;
  require_rows(inputs.position_ids, "position_ids", rows.positions, "shorten the texts");
  const auto divided = runtime::divided_sequence();
  const auto length = divided ? divided->length : past + ids.size(1);
  if (inputs.position_ids.defined() || length <= rows.positions) return;
  throw UsageError({.what = text::concat("input_ids: a text has ", length, " tokens"),
                    .why = text::concat("the model has only ", rows.positions, " positions"),
                    .hint = "shorten the texts, or divide them"});
}

void require_images(const ModelInputs& inputs) {
  refuse_targets(inputs);
  const auto& images = inputs.pixel_values;
  if (!images.defined())
    throw UsageError(
        {.what = "pixel_values is missing", .why = "the model reads images", .hint = "set ModelInputs::pixel_values"});
  if (images.dim() == 4) return;
  throw UsageError(
      {.what = text::concat("pixel_values: expected [batch, channels, height, width], got ", shape_of(images)),
       .hint = "a single image is a batch of one: unsqueeze(0)"});
}

}  // namespace hortator::models

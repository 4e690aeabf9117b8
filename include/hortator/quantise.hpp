#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <hortator/export.hpp>
#include <hortator/model.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace hortator {

/// How a weight is kept in fewer bits.
enum class WeightFormat {
  int8,        ///< whole numbers from -127 to 127, and the largest absolute value of each row
  int4,        ///< whole numbers from 0 to 15, and the scale and the smallest value of each group of a row
  nf4,         ///< QLoRA's 16 values for normally distributed weights, and the largest absolute value of each group
  int8_groups  ///< whole numbers from -127 to 127, and the scale of each group of a row
};

/// "int8", "int4", "nf4" or "int8_groups". Throws UsageError for others.
HORTATOR_API WeightFormat parse_weight_format(std::string_view name);

struct QuantiseOptions {
  WeightFormat format = WeightFormat::int8;
  std::int64_t group = 64;  ///< 16, 32, 64, 128, ...; bitsandbytes' blocksize. int8 has none
  /// Layers that stay as they are, by name or the end of a name from a dot on. (llm_int8_skip_modules)
  std::vector<std::string> skip = {};
  /// The format of the layer that scores a language model's tokens, and of the embedding that shares its weight.
  /// Without it, they stay as they are.
  std::optional<WeightFormat> scoring = {};
  /// The type in which products are computed. Without it, that of their inputs.
  std::optional<c10::ScalarType> compute_dtype = {};
};

/// bitsandbytes' settings of a model, by the names of Hugging Face Accelerate.
struct BnbQuantizationConfig {
  bool load_in_8bit = false;
  bool load_in_4bit = false;
  std::string bnb_4bit_quant_type = "nf4";
  bool bnb_4bit_use_double_quant = false;
  std::string bnb_4bit_compute_dtype = {};  ///< "fp32", "fp16" or "bf16"; empty: the type of the inputs
  double llm_int8_threshold = 6.0;  ///< of outliers, which are not needed: activations are not rounded to 8 bits
  std::vector<std::string> skip_modules = {};
  std::vector<std::string> keep_in_fp32_modules = {};  ///< also for LoadAndDispatchOptions
};

/// The same as options of quantise(). Throws UsageError, with the field's name, for values that are not supported: the
/// type fp4, double quantisation, and both or neither of load_in_8bit and load_in_4bit.
HORTATOR_API QuantiseOptions quantise_options(const BnbQuantizationConfig& config);

/// What quantise() has done.
struct QuantiseReport {
  std::vector<std::string> layers = {};  ///< their names
  std::int64_t bytes_before = 0;         ///< of their weights
  std::int64_t bytes_after = 0;
};

namespace detail {
template <typename M>
concept QuantisableModule = Module<std::remove_const_t<M>>;

HORTATOR_API QuantiseReport quantise(torch::nn::Module& module, const QuantiseOptions& options);
}  // namespace detail

/// Keeps the weights of a model's linear layers in 8 or 4 bits: an eighth to a quarter of the memory, and of the time
/// in which one token is generated. The parameter itself holds the packed bytes, with its scales, and is frozen;
/// linear(), addmm() and matmul() compute with them, whatever forward is: layers of hortator::models,
/// torch::nn::Linear, and modules that derive from HasTransposedWeight. Activations and results keep their type. Values
/// are those of bitsandbytes (int8: rows of int8_vectorwise_quant; nf4: quantize_4bit without double quantisation).
///
///     auto net = hortator::models::from_pretrained(folder);
///     hortator::quantise(net, {.format = hortator::WeightFormat::int4});
///     hortator::lora(net, {.rank = 16});  // QLoRA
///
/// Convert the model (net->to(type)) before. On CPUs. Not with parallel.tensor. To pack weights while they are loaded,
/// also those that stay on disk, use load_checkpoint_and_dispatch() with `.quantise`. models::save_pretrained() saves
/// the packed weights. Local.
template <detail::QuantisableModule M>
QuantiseReport quantise(M& model, const QuantiseOptions& options = {}) {
  return detail::quantise(detail::module_of(model), options);
}

}  // namespace hortator

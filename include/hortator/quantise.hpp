#pragma once

#include <cstdint>
#include <hortator/export.hpp>
#include <hortator/model.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace hortator {

/// How a weight is kept in fewer bits.
enum class WeightFormat {
  int8,  ///< whole numbers from -127 to 127, and the largest absolute value of each row
  int4,  ///< whole numbers from 0 to 15, and the scale and the smallest value of each group of a row
  nf4    ///< QLoRA's 16 values for normally distributed weights, and the largest absolute value of each group
};

/// "int8", "int4" or "nf4". Throws UsageError for others.
HORTATOR_API WeightFormat parse_weight_format(std::string_view name);

struct QuantiseOptions {
  WeightFormat format = WeightFormat::int8;
  std::int64_t group = 64;  ///< of int4 and nf4: 16, 32, 64, 128, ...; bitsandbytes' blocksize
  /// Layers that stay as they are, by name or the end of a name from a dot on. The layer that scores a language model's
  /// tokens always does. (llm_int8_skip_modules)
  std::vector<std::string> skip = {};
};

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
/// Convert the model (net->to(type)) before. On CPUs. Not with parallel.tensor. A model that is quantised cannot be
/// saved as a whole; its adapters can. Local.
template <detail::QuantisableModule M>
QuantiseReport quantise(M& model, const QuantiseOptions& options = {}) {
  return detail::quantise(detail::module_of(model), options);
}

}  // namespace hortator

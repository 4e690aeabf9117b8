#pragma once

#include <cstdint>
#include <hortator/export.hpp>
#include <hortator/model.hpp>
#include <string>
#include <type_traits>
#include <vector>

namespace hortator {

/// How fp8() chooses the scale of a tensor.
enum class Fp8Scaling {
  dynamic,  ///< by the tensor's own largest absolute value
  delayed   ///< by those of the steps before: no pass over the tensor has to end before it is cast
};

/// The types of 8 bits: E4M3 has 3 bits of precision and a range up to 448, E5M2 2 bits and a range up to 57344.
enum class Fp8Format {
  hybrid,  ///< E4M3 in forward, E5M2 for gradients
  e4m3     ///< E4M3 for both
};

/// Options of fp8().
struct Fp8Options {
  Fp8Scaling scaling = Fp8Scaling::dynamic;
  Fp8Format format = Fp8Format::hybrid;
  std::int64_t amax_history_length = 1024;  ///< of delayed scaling: steps whose largest values count
  bool amax_most_recent = true;             ///< of delayed scaling: the last step's; false: the largest of the history
  std::int64_t margin = 0;                  ///< of delayed scaling: scales leave room for values 2^margin as large
  bool skip_first_and_last = true;          ///< the first and the last linear layer compute as without fp8()
  std::vector<std::string> skip = {};       ///< further ones, by name or the end of a name from a dot on
  bool during_evaluation = false;           ///< also in evaluation mode
};

namespace detail {
template <typename M>
concept Fp8Module = Module<std::remove_const_t<M>>;

HORTATOR_API std::vector<std::string> fp8(torch::nn::Module& module, const Fp8Options& options);
}  // namespace detail

/// Lets a model's linear layers compute in 8 bits: forward and both products of backward, with one scale a tensor
/// (at::_scaled_mm on GPUs). Parameters, gradients and optimizers stay as they are, and so does all else. Returns the
/// names of the layers. Layers with sizes that are no multiples of 16, which GPUs do not multiply, stay in their type.
///
/// Precision::fp8 does it in prepare(), with these defaults, in bf16's autocast; call it before for others:
///
///     hortator::Accelerator accelerator({.mixed_precision = hortator::Precision::fp8});
///     hortator::fp8(net, {.scaling = hortator::Fp8Scaling::delayed});
///     auto [model, optimizer] = accelerator.prepare(net, adamw);
///
/// On CPUs, which emulate it, and on GPUs of compute capability 8.9 and above. Histories of delayed scaling are not in
/// checkpoints: a run that resumes begins them again. Delayed scaling throws UsageError within recompute() and in
/// captured steps. Local: all ranks call it alike.
template <detail::Fp8Module M>
std::vector<std::string> fp8(M& model, const Fp8Options& options = {}) {
  return detail::fp8(detail::module_of(model), options);
}

}  // namespace hortator

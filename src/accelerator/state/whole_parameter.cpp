#include "accelerator/state/whole_parameter.hpp"

#include <span>

#include "accelerator/state/divided_state.hpp"
#include "interception/claimed_operators.hpp"
#include "interception/dispatch_keys.hpp"
#include "parallel/pipeline/staged_module.hpp"
#include "parallel/tensor/divided_tensor.hpp"

namespace hortator::accelerator {
namespace {

// Copies, since training continues to change the memory.
at::Tensor in_host_memory(const at::Tensor& tensor) {
  return tensor.detach().to(at::kCPU, /*non_blocking=*/false, /*copy=*/true);
}

/// Keeps a parameter present, with exact values. @collective if it is sharded
class Present {
 public:
  explicit Present(const at::Tensor& parameter) : hold_(std::span(&parameter, 1), interception::Access::read_exact) {}

 private:
  interception::Hold hold_;
};

/// The whole parameter of a stage, on a rank that has the stage. @collective over these
at::Tensor copy_of_stage(const step::ModelCore& model, const std::string& name, const at::Tensor& parameter,
                         bool keeps) {
  const auto* division = model.is_lent() ? nullptr : model.divided();
  if (const auto* one = division != nullptr ? division->find(parameter) : nullptr) {
    const auto whole = joined(unjoined(name, model, *one));
    return keeps ? in_host_memory(whole) : at::Tensor();
  }
  if (keeps) return exact_copy(parameter);
  bring(parameter);
  return {};
}

}  // namespace

void bring(const at::Tensor& parameter) { const Present present(parameter); }

at::Tensor exact_copy(const at::Tensor& parameter) {
  const Present present(parameter);
  auto memory = parameter.detach();
  interception::remove_key(memory);  // so that it is one use of the parameter, as on the ranks that only bring it in
  return in_host_memory(memory);
}

at::Tensor whole_copy(const step::ModelCore& model, const std::string& name, const at::Tensor& parameter, bool keeps) {
  const auto* staged = model.is_lent() ? nullptr : model.staged();
  const bool travels = staged != nullptr && staged->ranks_of(staged->name_of(parameter)).front() != 0;
  const bool is_here = !parallel::is_of_other_stage(parameter);
  auto whole = is_here ? copy_of_stage(model, name, parameter, keeps || travels) : at::Tensor();
  if (!travels) return whole;
  const parallel::PartsOnly as_they_lie;
  whole = staged->values_on_all(parameter, whole.defined() ? whole.to(parameter.device()) : whole);
  return keeps ? in_host_memory(whole) : at::Tensor();
}

}  // namespace hortator::accelerator

#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <hortator/big_models.hpp>
#include <hortator/error.hpp>

#include "bigmodel/empty_key.hpp"
#include "bigmodel/empty_recorder.hpp"

namespace hortator {
namespace {

thread_local bigmodel::EmptyRecorder* recorder = nullptr;

void see_call(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  recorder->handle(op, keys, *stack);
}

void take_memory(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.numel() == 0) return;
  recorder->forget(tensor);
  if (!is_empty_weight(tensor)) tensor.set_data(bigmodel::without_memory(tensor));
  bigmodel::refuse_reading(tensor.storage(),
                           "the tensor has no values yet (it was made by init_empty_weights). load a checkpoint into "
                           "the model first");
}

}  // namespace

TORCH_LIBRARY_IMPL(_, DeferredInit, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&see_call>());
}

namespace detail {

struct EmptyConstruction::Guard {
  Guard() : include(bigmodel::empty_key) { recorder = &own; }
  ~Guard() { recorder = nullptr; }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  bigmodel::EmptyRecorder own;
  c10::impl::IncludeDispatchKeyGuard include;
};

EmptyConstruction::EmptyConstruction() {
  if (recorder != nullptr) {
    throw UsageError({.what = "init_empty_weights() within init_empty_weights()",
                      .hint = "the outer one makes everything empty that is constructed in it"});
  }
  guard_ = std::make_unique<Guard>();
}

EmptyConstruction::~EmptyConstruction() = default;

void EmptyConstruction::finish(torch::nn::Module& module, const EmptyOptions& options) {
  const c10::impl::ExcludeDispatchKeyGuard over(bigmodel::empty_key);
  for (const auto& buffer : module.buffers()) {
    if (options.include_buffers) {
      take_memory(buffer);
    } else {
      recorder->fill(buffer);
    }
  }
  for (const auto& parameter : module.parameters()) take_memory(parameter);
  recorder->leave_empty(
      "the tensor has no values (it was made within init_empty_weights, and is neither a parameter nor a "
      "buffer of the module). register it as a buffer");
}

}  // namespace detail

bool is_empty_weight(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.has_storage() || tensor.numel() == 0) return false;
  return tensor.storage().unsafeGetStorageImpl()->_mutable_data_ptr_no_checks().get() == nullptr;
}

}  // namespace hortator

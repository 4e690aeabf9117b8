#include "step/recompute/recomputation.hpp"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/variable.h>

#include <hortator/error.hpp>
#include <utility>

#include "comm/operands.hpp"
#include "core/text/text.hpp"
#include "machine/device/recording.hpp"
#include "parallel/pipeline/halved_backward.hpp"
#include "parallel/pipeline/plain/plain_pass.hpp"
#include "step/recompute/saved_tensor_scope.hpp"

namespace hortator {
namespace step {
namespace {

/// Thrown when the second run has filled all slots. Not a std::exception, so that user code does not catch it as an
/// error.
struct RefillComplete {};

thread_local int recompute_depth = 0;

struct RecomputeScope {
  RecomputeScope() { ++recompute_depth; }
  ~RecomputeScope() { --recompute_depth; }
  RecomputeScope(const RecomputeScope&) = delete;
  RecomputeScope& operator=(const RecomputeScope&) = delete;
};

/// Restores buffers at its end, without a new version for autograd: their values are as before.
class BufferRestoreScope {
 public:
  explicit BufferRestoreScope(const std::vector<at::Tensor>& buffers) : buffers_(buffers) {
    const at::NoGradGuard no_grad;
    for (const auto& buffer : buffers_) before_.push_back(buffer.defined() ? buffer.clone() : buffer);
  }
  ~BufferRestoreScope() {
    const at::NoGradGuard no_grad;
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      if (buffers_[i].defined()) buffers_[i].copy_(before_[i]);
    }
  }
  BufferRestoreScope(const BufferRestoreScope&) = delete;
  BufferRestoreScope& operator=(const BufferRestoreScope&) = delete;

 private:
  std::vector<at::Tensor> buffers_;
  std::vector<at::Tensor> before_;
};

// A second run would draw other random numbers, and read results that the rank does not have.
void refuse_in_plain_pass() {
  if (!parallel::divides_plain_forward()) return;
  throw UsageError({.what = "recompute() was called in a step of a pipeline by a module that names no layers",
                    .why = "what backward computes again would not be what forward of the stage has computed",
                    .hint = "derive the module from hortator::HasPipelineLayers, which recomputes within a stage"});
}

// The second run starts from the first one's random numbers, and the state of a device's generator cannot be read while
// work is recorded.
void refuse_in_recording() {
  if (!machine::is_recording()) return;
  throw UsageError({.what = "recompute was called within a step that is recorded (accelerator.capture)",
                    .why = "a recording cannot go back to earlier random numbers",
                    .hint = "leave out one of the two"});
}

[[noreturn]] void throw_different(std::string what) {
  throw UsageError({.what = "recompute: " + std::move(what),
                    .why = "gradients would be computed from other activations than the loss",
                    .hint = "a recomputed function must depend on its arguments, parameters and random numbers only, "
                            "and must do the same each time"});
}

}  // namespace

/// Stands for a tensor that the first run saved.
class Recomputation::SlotHooks final : public torch::autograd::SavedVariableHooks {
 public:
  explicit SlotHooks(std::shared_ptr<Recomputation> call) : call_(std::move(call)) {}
  ~SlotHooks() override {
    if (slot_) call_->forget(*slot_);
  }
  void call_pack_hook(const at::Tensor& tensor) override { slot_ = call_->add(tensor); }
  at::Tensor call_unpack_hook() override {
    const auto alive = call_;  // the second run may release the graph that owns this object
    return alive->take(*slot_);
  }

 private:
  std::shared_ptr<Recomputation> call_;
  std::optional<std::size_t> slot_;
};

/// For tensors that the second run saves. Keeps them too, since the call may contain a backward pass of its own.
class Recomputation::RefillHooks final : public torch::autograd::SavedVariableHooks {
 public:
  explicit RefillHooks(Recomputation& call) : call_(call) {}
  void call_pack_hook(const at::Tensor& tensor) override {
    kept_ = tensor.detach();
    call_.fill_next(kept_, tensor);
  }
  at::Tensor call_unpack_hook() override { return kept_; }

 private:
  Recomputation& call_;
  at::Tensor kept_;
};

Recomputation::Recomputation(hortator::detail::RecomputedCall call)
    : call_(std::move(call)), random_(RandomState::current(call_.arguments)) {
  for (auto& argument : std::exchange(call_.arguments, {})) {
    arguments_.emplace_back(argument, /*is_output=*/false);
    if (argument.defined()) watched_.emplace_back(argument, argument._version());
  }
}

std::unique_ptr<torch::autograd::SavedVariableHooks> Recomputation::pack_hooks() {
  return std::make_unique<SlotHooks>(shared_from_this());
}

// Checked here, not in backward: within another recomputed call a later check could not detect it.
void Recomputation::finish() {
  for (const auto& [argument, version] : std::exchange(watched_, {})) {
    if (argument._version() != version) throw_different("an argument was changed in place");
  }
}

Recomputation::TensorTraits Recomputation::traits_of(const at::Tensor& tensor) {
  const auto& whole = tensor.is_view() ? tensor._base() : tensor;
  const bool is_parameter = whole.is_leaf() && whole.requires_grad();
  return {.sizes = tensor.sizes().vec(),
          .type = tensor.scalar_type(),
          .device = tensor.device(),
          .version = is_parameter ? std::optional<std::int64_t>(tensor._version()) : std::nullopt};
}

bool Recomputation::TensorTraits::has_shape_of(const TensorTraits& other) const {
  return sizes == other.sizes && type == other.type && device == other.device;
}

// An argument that was a view when it was saved is not a view after unpacking, so it may have no version.
bool Recomputation::TensorTraits::has_version_of(const TensorTraits& other) const {
  return !version || !other.version || version == other.version;
}

std::string Recomputation::describe(const TensorTraits& traits) {
  return text::concat(traits.type, " [", text::join(traits.sizes), "] on ", traits.device);
}

std::size_t Recomputation::add(const at::Tensor& tensor) {
  const std::scoped_lock lock(mutex_);
  slots_.push_back({.traits = traits_of(tensor)});
  return slots_.size() - 1;
}

void Recomputation::forget(std::size_t slot) {
  const std::scoped_lock lock(mutex_);
  slots_[slot].needed = false;
  slots_[slot].value.reset();
}

// Values that an earlier, partial backward pass left in slots are still valid. The first half of a backward pass leaves
// them for the second.
at::Tensor Recomputation::take(std::size_t index) {
  const std::scoped_lock lock(mutex_);
  auto& slot = slots_[index];
  if (!slot.value.defined()) run_again();
  if (slot.value._version() != slot.version) throw_different("a tensor was changed in place after it was saved");
  if (parallel::runs_first_half()) return slot.value;
  return std::exchange(slot.value, {});
}

void Recomputation::run_again() {
  drop_values();
  std::vector<at::Tensor> arguments;
  for (const auto& argument : arguments_) arguments.push_back(argument.unpack());
  next_ = 0;
  try {
    run_with_first_state(arguments);
  } catch (const RefillComplete&) {
  } catch (...) {
    drop_values();
    throw;
  }
  if (next_ == slots_.size()) return;
  throw_different(text::concat("the second run saved ", text::count(static_cast<long long>(next_), "tensor"),
                               " for backward, but the first run saved ", slots_.size()));
}

void Recomputation::run_with_first_state(const std::vector<at::Tensor>& arguments) {
  RECORD_USER_SCOPE("hortator::recompute");
  const at::AutoGradMode with_gradients(true);
  const RandomScope random(random_);
  const AutocastScope autocast(autocast_);
  const BufferRestoreScope unchanged(call_.buffers);
  const RecomputeScope running;
  const SavedTensorScope refill([this] { return std::make_unique<RefillHooks>(*this); });
  call_.rerun(arguments);
}

void Recomputation::fill_next(const at::Tensor& kept, const at::Tensor& tensor) {
  if (next_ == slots_.size()) throw RefillComplete();  // the function has caught the first exception
  auto& slot = slots_[next_];
  const auto traits = traits_of(tensor);
  if (!traits.has_shape_of(slot.traits)) {
    throw_different(text::concat("tensor ", next_, " that the second run saved for backward is ", describe(traits),
                                 ", but in the first run it was ", describe(slot.traits)));
  }
  if (!traits.has_version_of(slot.traits)) {
    throw_different("a parameter was changed between forward and backward");
  }
  if (slot.needed) {
    slot.value = kept;
    slot.version = kept._version();
  }
  if (++next_ == slots_.size()) throw RefillComplete();
}

void Recomputation::drop_values() {
  for (auto& slot : slots_) slot.value.reset();
}

}  // namespace step

bool is_recomputing() { return step::recompute_depth > 0; }

namespace detail {

class Recording::Scope {
 public:
  // In this order, so that the arguments are saved before the hooks of this call are in place.
  explicit Scope(RecomputedCall call)
      : unchanged_(is_recomputing() ? call.buffers : std::vector<at::Tensor>()),
        call_(std::make_shared<step::Recomputation>(std::move(call))),
        scope_([this] { return call_->pack_hooks(); }) {}
  void finish() { call_->finish(); }

 private:
  step::BufferRestoreScope unchanged_;  ///< for a first run within another call's second run
  std::shared_ptr<step::Recomputation> call_;
  step::SavedTensorScope scope_;
  parallel::UnseededScope unseeded_;  ///< a second run draws on from the first one's generator
};

Recording::Recording(RecomputedCall call) {
  step::refuse_in_recording();
  step::refuse_in_plain_pass();
  scope_ = std::make_unique<Scope>(std::move(call));
}

Recording::~Recording() = default;

void Recording::finish() { scope_->finish(); }

}  // namespace detail
}  // namespace hortator

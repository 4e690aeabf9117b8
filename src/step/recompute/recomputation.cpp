#include "step/recompute/recomputation.hpp"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/variable.h>

#include <hortator/error.hpp>
#include <utility>

#include "comm/operands.hpp"
#include "core/text/text.hpp"
#include "step/recompute/saved_tensor_scope.hpp"

namespace hortator {
namespace step {
namespace {

/// Thrown when the second run has made all that is needed. No std::exception: nobody is to take it for an error.
struct Enough {};

thread_local int running_again = 0;

struct RunningAgain {
  RunningAgain() { ++running_again; }
  ~RunningAgain() { --running_again; }
  RunningAgain(const RunningAgain&) = delete;
  RunningAgain& operator=(const RunningAgain&) = delete;
};

/// Puts buffers back at its end. Autograd does not notice: they are what they were.
class UnchangedBuffers {
 public:
  explicit UnchangedBuffers(const std::vector<at::Tensor>& buffers) : buffers_(buffers) {
    const at::NoGradGuard no_grad;
    for (const auto& buffer : buffers_) before_.push_back(buffer.defined() ? buffer.clone() : buffer);
  }
  ~UnchangedBuffers() {
    const at::NoGradGuard no_grad;
    const at::AutoDispatchBelowADInplaceOrView unnoticed;
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      if (buffers_[i].defined()) buffers_[i].copy_(before_[i]);
    }
  }
  UnchangedBuffers(const UnchangedBuffers&) = delete;
  UnchangedBuffers& operator=(const UnchangedBuffers&) = delete;

 private:
  std::vector<at::Tensor> buffers_;
  std::vector<at::Tensor> before_;
};

[[noreturn]] void throw_different(std::string what) {
  throw UsageError({.what = "recompute: " + std::move(what),
                    .why = "gradients would be made of other activations than the loss was",
                    .hint =
                        "what is recomputed must depend on nothing but its arguments, parameters and random numbers, "
                        "and must do the same each time"});
}

}  // namespace

/// In the place of a tensor that the first run saved.
class Recomputation::LeftOut final : public torch::autograd::SavedVariableHooks {
 public:
  explicit LeftOut(std::shared_ptr<Recomputation> call) : call_(std::move(call)) {}
  ~LeftOut() override {
    if (slot_) call_->forget(*slot_);
  }
  void call_pack_hook(const at::Tensor& tensor) override { slot_ = call_->add(tensor); }
  at::Tensor call_unpack_hook() override {
    const auto alive = call_;  // the second run may let go of the graph that owns this
    return alive->take(*slot_);
  }

 private:
  std::shared_ptr<Recomputation> call_;
  std::optional<std::size_t> slot_;
};

/// For tensors that the second run saves. They are kept here as well: the call may contain a backward pass of its own.
class Recomputation::Refill final : public torch::autograd::SavedVariableHooks {
 public:
  explicit Refill(Recomputation& call) : call_(call) {}
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

std::unique_ptr<torch::autograd::SavedVariableHooks> Recomputation::leave_out() {
  return std::make_unique<LeftOut>(shared_from_this());
}

// Found at once and not in backward: within another recomputed call nobody could tell any more.
void Recomputation::finish() {
  for (const auto& [argument, version] : std::exchange(watched_, {})) {
    if (argument._version() != version) throw_different("an argument was changed in place");
  }
}

Recomputation::Likeness Recomputation::likeness_of(const at::Tensor& tensor) {
  const auto& whole = tensor.is_view() ? tensor._base() : tensor;
  const bool is_parameter = whole.is_leaf() && whole.requires_grad();
  return {.sizes = tensor.sizes().vec(),
          .type = tensor.scalar_type(),
          .device = tensor.device(),
          .version = is_parameter ? std::optional<std::int64_t>(tensor._version()) : std::nullopt};
}

bool Recomputation::Likeness::has_shape_of(const Likeness& other) const {
  return sizes == other.sizes && type == other.type && device == other.device;
}

// An argument that was a view when it was saved is none when it is unpacked.
bool Recomputation::Likeness::has_version_of(const Likeness& other) const {
  return !version || !other.version || version == other.version;
}

std::string Recomputation::describe(const Likeness& likeness) {
  return text::concat(likeness.type, " [", text::join(likeness.sizes), "] on ", likeness.device);
}

std::size_t Recomputation::add(const at::Tensor& tensor) {
  const std::scoped_lock lock(mutex_);
  slots_.push_back({.likeness = likeness_of(tensor)});
  return slots_.size() - 1;
}

void Recomputation::forget(std::size_t slot) {
  const std::scoped_lock lock(mutex_);
  slots_[slot].wanted = false;
  slots_[slot].value.reset();
}

// Values that an earlier, partial backward pass has left are still those of the first run.
at::Tensor Recomputation::take(std::size_t index) {
  const std::scoped_lock lock(mutex_);
  auto& slot = slots_[index];
  if (!slot.value.defined()) run_again();
  if (slot.value._version() != slot.version) throw_different("a tensor was changed in place after it was saved");
  return std::exchange(slot.value, {});
}

void Recomputation::run_again() {
  drop_values();
  std::vector<at::Tensor> arguments;
  for (const auto& argument : arguments_) arguments.push_back(argument.unpack());
  next_ = 0;
  try {
    run_under_first_conditions(arguments);
  } catch (const Enough&) {
  } catch (...) {
    drop_values();
    throw;
  }
  if (next_ == slots_.size()) return;
  throw_different(text::concat("the second run saved ", text::count(static_cast<long long>(next_), "tensor"),
                               " for backward, the first ", slots_.size()));
}

void Recomputation::run_under_first_conditions(const std::vector<at::Tensor>& arguments) {
  RECORD_USER_SCOPE("hortator::recompute");
  const at::AutoGradMode with_gradients(true);
  const RandomScope random(random_);
  const AutocastScope autocast(autocast_);
  const UnchangedBuffers unchanged(call_.buffers);
  const RunningAgain running;
  const SavedTensorScope refill([this] { return std::make_unique<Refill>(*this); });
  call_.again(arguments);
}

void Recomputation::fill_next(const at::Tensor& kept, const at::Tensor& tensor) {
  if (next_ == slots_.size()) throw Enough();  // someone has caught the first one
  auto& slot = slots_[next_];
  const auto likeness = likeness_of(tensor);
  if (!likeness.has_shape_of(slot.likeness)) {
    throw_different(text::concat("tensor ", next_, " that the second run saved for backward is ", describe(likeness),
                                 ", in the first run it was ", describe(slot.likeness)));
  }
  if (!likeness.has_version_of(slot.likeness)) {
    throw_different("a parameter was changed between forward and backward");
  }
  if (slot.wanted) {
    slot.value = kept;
    slot.version = kept._version();
  }
  if (++next_ == slots_.size()) throw Enough();
}

void Recomputation::drop_values() {
  for (auto& slot : slots_) slot.value.reset();
}

}  // namespace step

bool is_recomputing() { return step::running_again > 0; }

namespace detail {

class Recording::Scope {
 public:
  // In this order: the arguments are saved as outside of the call.
  explicit Scope(RecomputedCall call)
      : unchanged_(is_recomputing() ? call.buffers : std::vector<at::Tensor>()),
        call_(std::make_shared<step::Recomputation>(std::move(call))),
        scope_([this] { return call_->leave_out(); }) {}
  void finish() { call_->finish(); }

 private:
  step::UnchangedBuffers unchanged_;  ///< in a first run that is within another call's second one
  std::shared_ptr<step::Recomputation> call_;
  step::SavedTensorScope scope_;
};

Recording::Recording(RecomputedCall call) : scope_(std::make_unique<Scope>(std::move(call))) {}

Recording::~Recording() = default;

void Recording::finish() { scope_->finish(); }

}  // namespace detail
}  // namespace hortator

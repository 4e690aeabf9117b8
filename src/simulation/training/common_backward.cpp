#include "simulation/training/common_backward.hpp"

#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>

#include "accelerator/channels/channels.hpp"
#include "accelerator/training/step_control.hpp"
#include "accelerator/training/training.hpp"
#include "runtime/ending/failure.hpp"
#include "simulation/calls/local_outcome.hpp"

namespace hortator::simulation {
namespace {

/// Finds the parameters whose gradients a pass has changed.
class GradientMarks {
 public:
  explicit GradientMarks(const std::vector<at::Tensor>& parameters) : parameters_(parameters) {
    before_.reserve(parameters.size());
    for (const auto& parameter : parameters) before_.push_back(mark_of(parameter));
  }

  std::vector<at::Tensor> unchanged() const {
    std::vector<at::Tensor> found;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (mark_of(parameters_[i]) == before_[i]) found.push_back(parameters_[i]);
    }
    return found;
  }

 private:
  struct Mark {
    const void* gradient = nullptr;
    std::uint32_t version = 0;
    bool operator==(const Mark&) const = default;
  };
  static Mark mark_of(const at::Tensor& parameter) {
    const auto& gradient = parameter.grad();
    if (!gradient.defined()) return {};
    return {gradient.unsafeGetTensorImpl(), static_cast<std::uint32_t>(gradient._version())};
  }

  const std::vector<at::Tensor>& parameters_;
  std::vector<Mark> before_ = {};
};

/// Lets passes that fail stay open, to be completed.
class KeptPasses {
 public:
  explicit KeptPasses(parallel::BackwardPass& pass) : pass_(pass) { pass_.keep_failed(true); }
  ~KeptPasses() { pass_.keep_failed(false); }
  KeptPasses(const KeptPasses&) = delete;
  KeptPasses& operator=(const KeptPasses&) = delete;

 private:
  parallel::BackwardPass& pass_;
};

/// Completes a pass that has failed here: a plain backward pass, which begins at the parameters themselves, with zeros.
/// It ends with the communication, unless all gradients had arrived or there is one rank only: then that is left to do.
void send_zeros(accelerator::Training& training, const std::vector<at::Tensor>& parameters) {
  if (parameters.empty()) {
    training.control.agree_on_models();
  } else {
    std::vector<at::Tensor> zeros;
    for (const auto& parameter : parameters) zeros.push_back(at::zeros_like(parameter));
    torch::autograd::backward(parameters, zeros);
  }
  training.synchronise_gradients();
}

/// Whether the exception in flight is thrown by all ranks together.
bool is_common() { return runtime::describe(std::current_exception()).rank.has_value(); }

}  // namespace

void common_backward(Accelerator& accelerator, const at::Tensor& loss, const std::vector<at::Tensor>& parameters) {
  auto& training = accelerator::Training::of(accelerator);
  const GradientMarks marks(parameters);
  const KeptPasses kept(training.control.backward_pass());
  mpi::LocalOutcome outcome;
  try {
    accelerator.backward(loss);
  } catch (...) {
    if (is_common()) throw;
    outcome = current_outcome();
    send_zeros(training, marks.unchanged());
  }
  mpi::agree(training.host(), outcome);
}

}  // namespace hortator::simulation

#include <hortator/accelerator.hpp>

#include "accelerator/channels/channels.hpp"
#include "accelerator/structures/encoded_objects.hpp"
#include "accelerator/training/step_control.hpp"
#include "accelerator/training/training.hpp"
#include "core/call_site.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"

namespace hortator {

// If a rank cannot encode or decode, all throw.
std::vector<std::string> Accelerator::gather_encoded(const std::function<std::string()>& encode) const {
  const CallSite site(__builtin_return_address(0));
  return accelerator::gather_encoded(training_->data().host, encode);
}

std::string Accelerator::broadcast_encoded(const std::function<std::string()>& encode, int from_process) const {
  const CallSite site(__builtin_return_address(0));
  return accelerator::broadcast_encoded(training_->host(), encode, from_process);
}

void Accelerator::decode_together(const std::function<void()>& decode) const {
  mpi::all_or_none(training_->host(), decode);
}

void Accelerator::set_trigger() { training_->control.set_trigger(); }

bool Accelerator::check_trigger() {
  const CallSite site(__builtin_return_address(0));
  return mpi::all_reduce(training_->host(), training_->control.take_trigger(), mpi::Op::logical_or);
}

}  // namespace hortator

#include <hortator/accelerator.hpp>

#include "accelerator/training/training.hpp"
#include "comm/operands.hpp"
#include "core/call_site.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"

namespace hortator {

// If a rank cannot encode or decode, all throw.
std::vector<std::string> Accelerator::gather_encoded(const std::function<std::string()>& encode) const {
  const CallSite site(__builtin_return_address(0));
  std::string mine;
  const auto& host = training_->data().host;
  mpi::all_or_none(host, [&] { mine = encode(); });
  return mpi::all_gather(host, std::string_view(mine));
}

std::string Accelerator::broadcast_encoded(const std::function<std::string()>& encode, int from_process) const {
  const CallSite site(__builtin_return_address(0));
  std::string mine;
  mpi::all_or_none(training_->host(), [&] {
    comm::check_root(from_process, num_processes());
    if (from_process == process_index()) mine = encode();
  });
  return mpi::broadcast(training_->host(), std::string_view(mine), from_process);
}

void Accelerator::decode_together(const std::function<void()>& decode) const {
  mpi::all_or_none(training_->host(), decode);
}

void Accelerator::set_trigger() { training_->control.set_trigger(); }

bool Accelerator::check_trigger() {
  const CallSite site(__builtin_return_address(0));
  return mpi::all_reduce(training_->host(), training_->control.take_trigger(), MPI_LOR);
}

}  // namespace hortator

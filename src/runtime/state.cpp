#include <array>
#include <hortator/state.hpp>

#include "core/activity/activity.hpp"
#include "core/call_site.hpp"
#include "core/log.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"
#include "runtime/world.hpp"

namespace hortator {

std::string_view to_string(DistributedType type) {
  constexpr std::array<std::string_view, 3> names = {"no", "multi_cpu", "multi_gpu"};
  return names[static_cast<std::size_t>(type)];
}

State::State(const StateOptions& options) : world_(std::make_shared<runtime::World>(options)) {}

int State::process_index() const { return world_->topology().rank; }

int State::num_processes() const { return world_->topology().size; }

int State::local_process_index() const { return world_->topology().local_rank; }

int State::num_nodes() const { return world_->topology().nodes; }

const std::string& State::host() const { return world_->host(); }

c10::Device State::device() const { return world_->device(); }

DistributedType State::distributed_type() const { return world_->distributed_type(); }

// Without a call site: "if (!main) wait; work; if (main) wait" is one barrier in two lines.
void State::wait_for_everyone() const { mpi::barrier(world_->comm()); }

void State::in_turns(bool first, const std::function<void()>& work) const {
  const CallSite site(__builtin_return_address(0));
  // One side may work for an hour, for example on a download.
  const activity::PhaseScope phase(activity::Phase::one_side_first);
  const auto idle = [] {};
  mpi::all_or_none(world_->comm(), first ? work : idle);
  mpi::all_or_none(world_->comm(), first ? idle : work);
}

void State::print_line(const std::string& line) { log::print(line); }

}  // namespace hortator

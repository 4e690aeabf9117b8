#include <hortator/datasets/staging.hpp>

#include "core/activity/activity.hpp"
#include "core/call_site.hpp"
#include "data/files/staged_file.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"
#include "runtime/world.hpp"

namespace hortator {

std::filesystem::path stage_to_node(const State& state, const std::filesystem::path& file,
                                    const std::filesystem::path& folder) {
  const CallSite site(__builtin_return_address(0));
  const activity::PhaseScope phase(activity::Phase::one_side_first);  // copying a terabyte takes long
  const auto& world = state.world();
  std::string path;
  mpi::all_or_none(world.comm(), [&] {
    if (!state.is_local_main_process()) return;
    const data::StagedFile copy(file, folder.empty() ? data::node_folder(core::process_variables()) : folder);
    if (!copy.is_current()) copy.copy();
    path = copy.path().string();
  });
  return mpi::broadcast(world.node(), std::string_view(path));
}

}  // namespace hortator

#include "tools/passing_run.hpp"

#include <unistd.h>

#include <hortator/run.hpp>
#include <string_view>

#include "core/environment/environment.hpp"
#include "core/text/text.hpp"
#include "mpi/collectives.hpp"
#include "mpi/environment.hpp"
#include "runtime/run_folder.hpp"
#include "tools/leftovers.hpp"

namespace hortator::tools {
namespace {

namespace fs = std::filesystem;

// The folder that rank 0 chooses, on all ranks.
fs::path temporary_folder(const mpi::Communicator& world, const std::string& tool, const fs::path& below) {
  const auto name = text::concat(tool, '-', mpi::host_name(), '-', getpid());
  return fs::path(mpi::broadcast(world, std::string_view((fs::weakly_canonical(below) / name).string())));
}

}  // namespace

int run_temporarily(const std::string& tool, const fs::path& below, const TemporaryRunBody& body) {
  fs::path folder;
  auto name = tool;
  char* argv[] = {name.data(), nullptr};
  const int code = hortator::run(1, argv, [&] {
    const auto world = mpi::Communicator::world();
    if (world.rank() == 0) remove_leftovers(below, tool);
    folder = temporary_folder(world, tool, below);
    if (world.rank() == 0) claim_folder(folder);
    if (core::process_variables()("HORTATOR_RUN_DIR").value_or("").empty()) runtime::set_run_folder(folder);
    body(world, folder);
  });
  // run() has waited for all ranks, so that nobody writes here any more.
  std::error_code ignored;
  if (runtime::current_run().rank == 0 && !folder.empty()) fs::remove_all(folder, ignored);
  return code;
}

}  // namespace hortator::tools

#include "tools/passing_run.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <hortator/run.hpp>
#include <string_view>
#include <vector>

#include "core/environment/environment.hpp"
#include "core/process.hpp"
#include "core/text/text.hpp"
#include "core/whole_file.hpp"
#include "mpi/collectives.hpp"
#include "mpi/environment.hpp"
#include "runtime/identity/run_folder.hpp"

namespace hortator::tools {
namespace {

namespace fs = std::filesystem;

constexpr const char* claim_file = ".claim";

bool is_own_folder(const fs::path& path) {
  struct stat status {};
  return lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid();
}

bool is_abandoned(const fs::path& folder) {
  return core::has_ended(text::first_line(core::read_whole(folder / claim_file).value_or("")));
}

// The folder that rank 0 chooses, on all ranks.
fs::path temporary_folder(const mpi::Communicator& world, const std::string& tool, const fs::path& below) {
  const auto name = text::concat(tool, '-', mpi::host_name(), '-', getpid());
  return fs::path(mpi::broadcast(world, std::string_view((fs::weakly_canonical(below) / name).string())));
}

}  // namespace

void claim_folder(const fs::path& folder) {
  std::error_code ignored;
  const auto own = core::process_id();
  if (own.empty() || !fs::create_directory(folder, ignored)) return;
  core::write_whole(folder / claim_file, folder / (std::string(claim_file) + ".new"), own + '\n');
}

void remove_leftovers(const fs::path& below, const std::string& tool) {
  std::error_code error;
  std::vector<fs::path> abandoned;
  for (fs::directory_iterator entry(below, error), end; !error && entry != end; entry.increment(error)) {
    const auto& path = entry->path();
    if (path.filename().string().starts_with(tool + "-") && is_own_folder(path) && is_abandoned(path))
      abandoned.push_back(path);
  }
  for (const auto& path : abandoned) fs::remove_all(path, error);
}

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
  // run() has waited for all ranks, so that no rank writes here any more.
  std::error_code ignored;
  if (runtime::current_run().rank == 0 && !folder.empty()) fs::remove_all(folder, ignored);
  return code;
}

}  // namespace hortator::tools

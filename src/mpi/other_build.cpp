#include "mpi/other_build.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <hortator/error.hpp>
#include <system_error>
#include <vector>

#include "core/environment/environment.hpp"
#include "core/environment/mpi_family.hpp"
#include "core/text/text.hpp"
#include "core/whole_file.hpp"

namespace hortator::mpi {
namespace {

namespace fs = std::filesystem;

constexpr auto library_path = "LD_LIBRARY_PATH";

fs::path file_of_this_code() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&file_of_this_code), &info) == 0 || info.dli_fname == nullptr) return {};
  std::error_code ignored;
  return fs::weakly_canonical(info.dli_fname, ignored);
}

// The builds of one file are FOLDER/FILE, and for other MPIs FOLDER/BELOW/FAMILY/FILE. `file` may be any of them.
std::optional<fs::path> sibling(const fs::path& file, const fs::path& below, const std::string& family) {
  auto folder = file.parent_path();
  const bool is_first = folder.filename() != "openmpi" && folder.filename() != "mpich";
  if (!is_first) folder = below.empty() ? folder.parent_path() : folder.parent_path().parent_path();
  std::error_code ignored;
  for (const auto& found : {folder / below / family / file.filename(), folder / file.filename()}) {
    if (found != file && fs::exists(found, ignored)) return found;
  }
  return std::nullopt;
}

void start_again(const OtherBuild& build) {
  auto arguments = text::split(core::read_whole("/proc/self/cmdline").value_or(""), '\0');
  if (!arguments.empty() && arguments.back().empty()) arguments.pop_back();
  std::vector<char*> pointers;
  for (auto& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  if (!build.library_folder.empty()) {
    const auto before = core::variable(library_path);
    const auto path =
        before ? text::concat(build.library_folder.string(), ':', *before) : build.library_folder.string();
    setenv(library_path, path.c_str(), 1);
  }
  execv(build.program.c_str(), pointers.data());
}

// It is what this process has been started with already: the loader has found the library elsewhere.
bool is_tried(const OtherBuild& build) {
  const auto path = core::variable(library_path).value_or("");
  return !build.library_folder.empty() && text::split(path, ':').front() == build.library_folder.string();
}

}  // namespace

std::optional<OtherBuild> find_other_build(const fs::path& program, const fs::path& code, const std::string& family) {
  if (program == code) {
    const auto found = sibling(program, "", family);
    return found ? std::optional(OtherBuild{.program = *found}) : std::nullopt;
  }
  const auto found = sibling(code, "hortator", family);
  if (!found) return std::nullopt;
  return OtherBuild{.program = program, .library_folder = found->parent_path()};
}

void restart_for_launcher(const std::string& own) {
  const auto family = core::mpi_family_of_launcher(core::process_variables());
  if (family.empty() || family == own) return;
  std::error_code failed;
  const auto program = fs::read_symlink("/proc/self/exe", failed);
  const auto other = failed ? std::nullopt : find_other_build(program, file_of_this_code(), family);
  if (other && !is_tried(*other)) start_again(*other);
  if (core::variable("HORTATOR_MPI_FAMILY")) {
    throw UsageError(
        {.what = text::concat("HORTATOR_MPI_FAMILY is ", family, ", and this program has no library for it"),
         .why = text::concat("it has loaded Hortator for ", own),
         .hint = text::concat("build Hortator with -DHORTATOR_MPI_ALSO=", family, ", or unset the variable")});
  }
}

}  // namespace hortator::mpi

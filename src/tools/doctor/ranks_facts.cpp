#include <dlfcn.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <set>

#include "core/text/text.hpp"
#include "machine/device/device.hpp"
#include "mpi/collectives.hpp"
#include "mpi/environment.hpp"
#include "tools/doctor/ranks.hpp"
#include "tools/programs.hpp"

namespace hortator::tools::doctor {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::set<std::string> devices_of_node(const mpi::Communicator& node) {
  std::set<std::string> all;
  for (const auto& of_rank : mpi::all_gather(node, text::join(machine::visible_uuids(), ","))) {
    for (auto& device : text::split(of_rank, ',')) {
      if (!device.empty()) all.insert(std::move(device));
    }
  }
  return all;
}

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

std::optional<bool> open_mpi_supports_fabrics() {
  if (!mpi::built_library().starts_with("Open MPI")) return {};  // ompi_info on PATH would be of another MPI
  const auto parts = run_command("ompi_info --parsable").output;
  if (parts.find(":pml:") == std::string::npos) return {};
  return parts.find(":pml:ucx") != std::string::npos || parts.find(":mtl:ofi") != std::string::npos;
}

bool can_load(const char* library) {
  void* const handle = dlopen(library, RTLD_LAZY | RTLD_LOCAL);
  if (handle != nullptr) dlclose(handle);
  return handle != nullptr;
}

}  // namespace

DeviceFacts inspect_devices(const mpi::Communicator& node) {
  const auto files = machine::device_files();
  return {.is_built = machine::accelerator_kind() != nullptr,
          .files = files.all,
          .openable = files.openable,
          .visible = static_cast<int>(machine::visible_devices().size()),
          .distinct = static_cast<int>(devices_of_node(node).size()),
          .local_ranks = node.size()};
}

BindingFacts inspect_binding(const mpi::Communicator& node) {
  BindingFacts binding{.machine_cpus = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN))};
  for (const auto& ranges : mpi::all_gather(node, machine::to_ranges(machine::own_cpu_set()))) {
    binding.of_ranks.push_back(machine::from_ranges(ranges));
  }
  return binding;
}

// The time that a message takes adds to the difference, so that the smallest of several is the most accurate.
ClockFacts inspect_clocks(const mpi::Communicator& comm) {
  double mine = INFINITY;
  for (int i = 0; i < 5; ++i) {
    mpi::barrier(comm);
    const double difference = now() - mpi::broadcast(comm, now());
    if (std::abs(difference) < std::abs(mine)) mine = difference;
  }
  const double ahead = mpi::all_reduce(comm, mine, mpi::Op::max);
  const double behind = -mpi::all_reduce(comm, mine, mpi::Op::min);
  const bool is_worst = std::abs(mine) >= std::max(ahead, behind);
  const int guilty = mpi::all_reduce(comm, is_worst ? comm.rank() : comm.size(), mpi::Op::min);
  const auto host = mpi::broadcast(comm, std::string_view(mpi::host_name()), guilty == comm.size() ? 0 : guilty);
  return {.max_behind = std::max(behind, 0.0), .max_ahead = std::max(ahead, 0.0), .worst = host};
}

FabricFacts inspect_fabric() {
  FabricFacts fabric{.mpi_supports_fabrics = open_mpi_supports_fabrics()};
  for (const auto* folder : {"/sys/class/infiniband", "/sys/class/cxi"}) {
    for (auto& name : names_in(folder)) fabric.devices.push_back(std::move(name));
  }
  fabric.has_nccl = machine::kind_of(c10::kCUDA) != nullptr;
  fabric.nccl_plugin = fabric.has_nccl && can_load("libnccl-net.so");
  rlimit locked{};
  if (getrlimit(RLIMIT_MEMLOCK, &locked) == 0 && locked.rlim_cur != RLIM_INFINITY)
    fabric.locked_memory = locked.rlim_cur;
  return fabric;
}

}  // namespace hortator::tools::doctor

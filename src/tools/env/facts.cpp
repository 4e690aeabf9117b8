#include "tools/env/facts.hpp"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <hortator/version.hpp>
#include <iomanip>
#include <sstream>

#include "core/environment/secrets.hpp"
#include "core/loaded_libraries.hpp"
#include "core/text/text.hpp"
#include "core/text/units.hpp"
#include "machine/device/device.hpp"
#include "mpi/environment.hpp"
#include "tools/launch/batch.hpp"
#include "tools/launch/machine.hpp"
#include "tools/launch/mpirun.hpp"
#include "tools/programs.hpp"

namespace hortator::tools::env {
namespace {

constexpr std::array<std::string_view, 4> reported_variables = {"CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH", "LD_PRELOAD",
                                                                "LIBTORCH"};
constexpr std::array<std::string_view, 20> prefixes = {
    "OMP_",   "GOMP_",  "KMP_", "MKL_", "HORTATOR_", "OMPI_", "PRTE_",  "PMI_",   "PMIX_", "PALS_",
    "MPICH_", "I_MPI_", "UCX_", "FI_",  "NCCL_",     "HDF5_", "TORCH_", "SLURM_", "PBS_",  "LSB_"};

std::string plain(const nlohmann::json& fact) {
  if (fact.is_string()) return fact.get<std::string>();
  if (fact.is_boolean()) return fact.get<bool>() ? "yes" : "no";
  if (!fact.is_array()) return fact.dump();
  std::vector<std::string> parts;
  for (const auto& part : fact) parts.push_back(plain(part));
  return parts.empty() ? "none" : text::join(parts);
}

std::string program_path(const std::string& name) {
  const auto path = find_program(name);
  return path ? path->string() : "not on PATH";
}

Section hortator_facts() {
  return {"hortator",
          {{"version", HORTATOR_VERSION},
           {"build type", HORTATOR_BUILD_TYPE},
           {"compiler", HORTATOR_COMPILER},
           {"Boost", HORTATOR_BOOST}}};
}

// Part of at::show_config(): "..., TORCH_VERSION=2.15.0, ..."
std::string loaded_torch_version() {
  const std::string config = at::show_config();
  const std::string name = "TORCH_VERSION=";
  const auto at = config.find(name);
  return at == std::string::npos ? "unknown" : text::split(config.substr(at + name.size(), 40), ',').front();
}

Section libtorch_facts() {
  return {
      "LibTorch",
      {{"version", loaded_torch_version()}, {"built against", HORTATOR_LIBTORCH}, {"threads", at::get_num_threads()}}};
}

Section mpi_facts() {
  return {"MPI",
          {{"library", mpi::library_version()},
           {"mpirun", program_path("mpirun")},
           {"mpirun says", text::first_line(output_of("mpirun --version"))},
           {"hortator launch takes", own_mpirun().value_or(launching::Mpirun{.program = "nothing"}).program}}};
}

Section hdf5_facts() { return {"HDF5", {{"version", HORTATOR_HDF5}, {"parallel", true}}}; }

Section cuda_facts() {
  const auto driver = nvidia_driver();
  Section section{
      "CUDA",
      {{"built with", HORTATOR_CUDA_BUILT}, {"NCCL", HORTATOR_NCCL}, {"driver", driver.empty() ? "none" : driver}}};
  auto devices = nlohmann::json::array();
  for (const auto device : machine::visible_devices()) devices.push_back(machine::identify(device).name);
  section.facts.emplace_back("devices", devices);
  return section;
}

Section loaded_facts() {
  Section section{.title = "loaded libraries", .has_foreign_names = true};
  for (const auto* name :
       {"libhortator.so", "libtorch_cpu.so", "libtorch_cuda.so", "libmpi.so", "libmpich.so", "libhdf5.so",
        "libhdf5_openmpi.so", "libhdf5_mpich.so", "libnccl.so", "libcudart.so", "libgomp"}) {
    const auto files = core::loaded_libraries(name);
    if (!files.empty()) section.facts.emplace_back(name, text::join(files));
  }
  return section;
}

Section machine_facts() {
  return {"machine",
          {{"host", mpi::host_name()},
           {"system", operating_system()},
           {"CPU", cpu_model()},
           {"cores", core_count()},
           {"CPUs", text::concat(cpu_count(), " of ", sysconf(_SC_NPROCESSORS_ONLN), ": ", cpu_list())},
           {"memory", units::bytes(memory_bytes())}}};
}

std::string scheduler() {
  const auto batch = detect_batch();
  if (batch.scheduler.empty()) return "none";
  return batch.job ? text::concat(batch.scheduler, ", inside job ", *batch.job) : batch.scheduler + ", outside a job";
}

// "build_type" for "build type".
std::string json_key(std::string_view name) {
  std::string key;
  for (const char c : name)
    key += std::isalnum(static_cast<unsigned char>(c)) != 0
               ? static_cast<char>(std::tolower(static_cast<unsigned char>(c)))
               : '_';
  return key;
}

Section job_facts() { return {"job", {{"scheduler", scheduler()}, {"srun", program_path("srun")}}}; }

Section variable_facts() {
  Section section{.title = "environment", .has_foreign_names = true};
  for (const auto& [name, value] : relevant_variables(environ)) section.facts.emplace_back(name, value);
  return section;
}

}  // namespace

bool is_relevant(std::string_view name) {
  return std::ranges::find(reported_variables, name) != reported_variables.end() ||
         std::ranges::any_of(prefixes, [&](auto prefix) { return name.starts_with(prefix); });
}

std::map<std::string, std::string> relevant_variables(const char* const* environment) {
  std::map<std::string, std::string> relevant;
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    const auto end = entry.find('=');
    if (end == std::string_view::npos) continue;
    const auto name = entry.substr(0, end);
    if (is_relevant(name)) relevant.emplace(name, core::shown_value(name, entry.substr(end + 1)));
  }
  return relevant;
}

std::string to_text(const Report& report) {
  std::size_t width = 0;
  for (const auto& section : report) {
    for (const auto& [name, fact] : section.facts) width = std::max(width, name.size());
  }
  std::ostringstream out;
  for (const auto& section : report) {
    out << section.title << '\n';
    for (const auto& [name, fact] : section.facts) {
      out << "  " << std::left << std::setw(static_cast<int>(width) + 2) << name << plain(fact) << '\n';
    }
  }
  return std::move(out).str();
}

nlohmann::json to_json(const Report& report) {
  nlohmann::json object = {{"schema_version", 1}};
  for (const auto& section : report) {
    auto& facts = object[json_key(section.title)];
    facts = nlohmann::json::object();
    for (const auto& [name, fact] : section.facts) facts[section.has_foreign_names ? name : json_key(name)] = fact;
  }
  return object;
}

Report gather_facts() {
  return {hortator_facts(), libtorch_facts(), mpi_facts(), hdf5_facts(),    cuda_facts(),
          loaded_facts(),   machine_facts(),  job_facts(), variable_facts()};
}

}  // namespace hortator::tools::env

#pragma once

#include <cstdint>
#include <string>

/// The machine that this process runs on, from the kernel's files.
namespace hortator::tools {

std::string cpu_list();   ///< the CPUs that this process may run on: "0-3,8"
int cpu_count();          ///< how many those are
int core_count();         ///< the same, hardware threads of one core counted once
bool is_confined();       ///< by taskset or a launcher, to fewer CPUs than the machine (or container) would allow
std::string cpu_model();  ///< empty where the kernel does not say
std::uint64_t memory_bytes();
std::string nvidia_driver();     ///< the line of the driver's that names its version; empty where none is loaded
std::string operating_system();  ///< "Debian GNU/Linux 12 (bookworm), Linux 6.1.0 x86_64"

}  // namespace hortator::tools

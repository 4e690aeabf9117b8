#pragma once

#include <cstdint>
#include <string>

/// The machine that this process runs on, as the kernel reports it.
namespace hortator::tools {

std::string cpu_list();  ///< the CPUs that this process may run on: "0-3,8"
int cpu_count();         ///< the number of these CPUs
int core_count();        ///< the number of their cores: hardware threads of one core count once
bool is_confined();  ///< whether taskset or a launcher has limited the CPUs below those of the machine (or container)
std::string cpu_model();  ///< empty if unknown
std::uint64_t memory_bytes();
std::string nvidia_driver();     ///< the driver's line with its version; empty if none is loaded
std::string operating_system();  ///< "Debian GNU/Linux 12 (bookworm), Linux 6.1.0 x86_64"

}  // namespace hortator::tools

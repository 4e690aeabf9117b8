#pragma once

#include <cstddef>
#include <string>

/// The CUDA devices that this process sees: none in a build without CUDA and on machines without driver or device.
namespace hortator::machine {

bool is_built();  ///< whether this library was built with CUDA

/// Also 0 when the driver is missing, too old or broken: never throws.
int visible_device_count();

/// Whether this process has used any of them.
bool is_in_use();

std::string name(int index);  ///< "NVIDIA H100 80GB HBM3"
/// Identifies the hardware as nvidia-smi does, independent of CUDA_VISIBLE_DEVICES:
/// "GPU-01234567-89ab-...".
std::string uuid(int index);

/// The address as the kernel writes it: "0000:3b:00.0".
std::string pci_address(int index);

std::size_t free_memory(int index);  ///< bytes that no process uses

/// Makes `index` the device of the calling thread.
void set_current(int index);

}  // namespace hortator::machine

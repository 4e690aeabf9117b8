#pragma once

#include <cstddef>
#include <string>

/// The CUDA devices that this process sees. In a build without CUDA, and on machines without driver or device, there
/// are none.
namespace hortator::machine {

bool is_built();  ///< was this library built with CUDA?

/// 0 also where the driver is missing, too old or out of order: never throws.
int visible_device_count();

/// Whether this process has begun to use any of them.
bool is_in_use();

std::string name(int index);  ///< "NVIDIA H100 80GB HBM3"
/// Names the hardware as nvidia-smi does, whatever CUDA_VISIBLE_DEVICES has made of its number:
/// "GPU-01234567-89ab-...".
std::string uuid(int index);

/// "0000:3b:00.0", as the kernel writes it.
std::string pci_address(int index);

std::size_t free_memory(int index);  ///< bytes that no process has taken

/// Makes `index` the device of the calling thread.
void set_current(int index);

}  // namespace hortator::machine

#pragma once

#include <cstdint>
#include <string>

#include "machine/device/device.hpp"

namespace hortator::accelerator {

/// The facts that decide whether a training step can be recorded on the device.
struct RecordingFacts {
  const machine::DeviceKind* kind = nullptr;  ///< of the device; null: the CPU
  int ranks = 1;
  bool waits_for_verdicts = false;  ///< over the gradients of scaled losses, on the host
  bool is_protected = false;        ///< ProtectionOptions
  bool is_sharded = false;
  bool is_paged = false;  ///< parameters are in memory only while operators use them (cpu_offload, disk_offload)
  bool is_reproducible = false;
  bool records_operators = false;  ///< RecordOptions
  std::int64_t accumulation_steps = 1;
  bool has_fused_optimizers = true;
};

/// Returns why the step cannot be recorded; empty if it can.
std::string why_not_recordable(const RecordingFacts& facts);

}  // namespace hortator::accelerator

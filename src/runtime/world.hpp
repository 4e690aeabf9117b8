#pragma once

#include <c10/core/Device.h>

#include <hortator/state.hpp>
#include <memory>
#include <string>

#include "machine/cpu/cpu_set.hpp"
#include "machine/cpu/threads.hpp"
#include "mpi/communicator.hpp"
#include "runtime/mpi_use.hpp"
#include "runtime/topology.hpp"
#include "runtime/watchdog/watchdog.hpp"

namespace hortator::runtime {

/// The ranks that work together, and this one's place, device and CPUs among them.
class World {
 public:
  /// Starts MPI if need be; refuses ranks that are apart or run different builds; sets LibTorch's threads and this
  /// thread's device; watches over its collectives.
  /// @collective
  explicit World(const StateOptions& options);
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  const mpi::Communicator& comm() const { return comm_; }
  const mpi::Communicator& node() const { return node_; }
  const Topology& topology() const { return topology_; }
  const std::string& host() const { return host_; }
  const machine::CpuSet& cpus() const { return cpus_; }
  const machine::ThreadPlan& threads() const { return threads_; }
  c10::Device device() const { return device_; }
  /// Of a CUDA device: where on the node it is, and what that means for this rank's CPUs; for people. Empty on the CPU.
  const std::string& device_place() const { return device_place_; }
  DistributedType distributed_type() const;
  /// How long a collective may last before the job is ended.
  std::chrono::milliseconds collective_timeout() const { return collective_timeout_; }

 private:
  void move_beside_device();

  MpiUse mpi_;
  mpi::Communicator comm_;
  mpi::Communicator node_;
  Topology topology_;
  std::string host_;
  machine::CpuSet cpus_;
  machine::ThreadPlan threads_;
  c10::Device device_ = c10::kCPU;
  std::string device_place_;
  std::chrono::milliseconds collective_timeout_{};
  std::unique_ptr<Watchdog> watchdog_;  ///< one rank has none: it waits for nobody
};

}  // namespace hortator::runtime

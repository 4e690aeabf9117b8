#pragma once

#include <c10/core/Device.h>

#include <hortator/state.hpp>
#include <memory>
#include <string>

#include "machine/cpu/cpu_set.hpp"
#include "machine/cpu/threads.hpp"
#include "mpi/communicator.hpp"
#include "runtime/ending/stop_signal.hpp"
#include "runtime/identity/mpi_use.hpp"
#include "runtime/identity/topology.hpp"
#include "runtime/watchdog/watchdog.hpp"

namespace hortator::runtime {

/// The ranks that work together, with this rank's position, device and CPUs.
class World {
 public:
  /// Starts MPI if necessary, sets LibTorch's threads and this thread's device, and starts the watchdog. Throws where
  /// MPI does not connect the ranks or they run different builds.
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
  /// For messages: where on the node a CUDA device is, and how this rank's CPUs are placed for it. Empty on the CPU.
  const std::string& device_place() const { return device_place_; }
  DistributedType distributed_type() const;
  /// The time after which a collective that has not ended ends the job.
  std::chrono::milliseconds collective_timeout() const { return collective_timeout_; }

 private:
  void move_beside_device();

  MpiUse mpi_;
  StopSignals signals_;  ///< also in programs without hortator::run
  mpi::Communicator comm_;
  mpi::Communicator node_;
  Topology topology_;
  std::string host_;
  machine::CpuSet cpus_;
  machine::ThreadPlan threads_;
  c10::Device device_ = c10::kCPU;
  std::string device_place_;
  std::chrono::milliseconds collective_timeout_{};
  std::unique_ptr<Watchdog> watchdog_;  ///< null for one rank, which never waits for another
};

}  // namespace hortator::runtime

#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <optional>
#include <vector>

#include "mpi/messages.hpp"
#include "parallel/pipeline/schedule.hpp"

namespace hortator::parallel {

/// What travels between stages with one micro-batch. Gradients may be undefined.
using StageTensors = std::vector<at::Tensor>;

/// Carries activations to the next stage, and their gradients back. Messages of one stage travel in the order in which
/// they are sent. Tensors on a device go through the host's memory.
class StageLinks {
 public:
  /// `ranks`: those along the pipeline. @collective
  StageLinks(const mpi::Communicator& ranks, c10::Device device);

  c10::Device device() const { return device_; }

  /// From the stage before `stage` to it. Nothing instead of tensors: the sender has failed.
  void send_activations(int stage, const std::optional<StageTensors>& tensors);
  /// Leaves of autograd's graph, which require gradients where the sent ones do. Nothing if the sender has failed.
  std::optional<StageTensors> receive_activations(int stage);
  /// From `stage` to the stage before it.
  void send_gradients(int stage, const std::optional<StageTensors>& gradients);
  std::optional<StageTensors> receive_gradients(int stage);
  /// Whether the next ones of these have begun to arrive.
  bool has_activations(int stage) { return messages_.has_arrived(mpi::Messages::Peer::previous, 2 * stage); }
  bool has_gradients(int stage) { return messages_.has_arrived(mpi::Messages::Peer::next, 2 * stage + 1); }
  /// Waits until all messages have left.
  void finish() { messages_.finish(); }

 private:
  void send(mpi::Messages::Peer to, int tag, const std::optional<StageTensors>& tensors);
  std::optional<StageTensors> receive(mpi::Messages::Peer from, int tag);

  mpi::Messages messages_;
  c10::Device device_;
};

}  // namespace hortator::parallel

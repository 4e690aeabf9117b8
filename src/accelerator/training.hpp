#pragma once

#include <functional>
#include <hortator/accelerator.hpp>
#include <memory>
#include <string>
#include <vector>

#include "accelerator/project.hpp"
#include "comm/communicator.hpp"
#include "runtime/world.hpp"
#include "train/backward_pass.hpp"
#include "train/model_core.hpp"
#include "train/optimizer_core.hpp"
#include "train/optimizer_state.hpp"
#include "train/session.hpp"

namespace hortator::accelerator {

/// An object of the user's that goes into checkpoints.
struct RegisteredObject {
  std::string name;
  std::function<void(StateWriter&)> save;
  std::function<void(const StateReader&)> load;
};

/// What one Accelerator holds: the communicators, and everything that was prepared, in that order.
class Training {
 public:
  Training(AcceleratorOptions options, runtime::World& world);
  ~Training() { forget(); }
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;

  const mpi::Communicator& host() const { return world_.comm(); }
  c10::Device device() const { return world_.device(); }
  /// Tensors travel by the back end of the device that they are on.
  comm::Communicator& communicator_of(const at::Tensor& tensor);
  comm::Communicator& device_communicator() { return on_device_ ? *on_device_ : *on_cpu_; }

  /// This rank leaves the collectives of the prepared objects: comm::Communicator::abandon.
  bool abandon(std::string_view reason) noexcept;
  /// After that: forgets what was prepared, and joins the ranks anew. @collective
  void start_afresh();

  /// Finishes gradients that are still on their way. @collective
  void synchronise_gradients();
  /// The loader whose loop was entered last and still runs; null outside of loops.
  const LoaderBase* active_loader() const;
  train::ParameterNames parameter_names() const;
  /// Of all models.
  train::TensorSet parameters() const;
  /// Forgets what was prepared; handles throw from now on.
  void forget();
  /// The same; the memory goes back to the device, where others may need it.
  void free_memory();

  AcceleratorOptions options;
  Project project;
  std::shared_ptr<train::Session> session = std::make_shared<train::Session>();
  train::BackwardPass backward_pass;
  std::vector<std::shared_ptr<train::ModelCore>> models;
  std::vector<std::shared_ptr<train::OptimizerCore>> optimizers;
  std::vector<LoaderBase> loaders;
  std::vector<Schedule> schedules;
  std::vector<RegisteredObject> objects;
  std::unique_ptr<ProgressSink> progress;
  bool announced = false;
  bool triggered = false;  ///< by this rank

 private:
  void connect();  ///< @collective

  runtime::World& world_;
  std::unique_ptr<comm::Communicator> on_cpu_;
  std::unique_ptr<comm::Communicator> on_device_;  ///< null when the device is the CPU
};

}  // namespace hortator::accelerator

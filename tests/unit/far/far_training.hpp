#pragma once

#include <ATen/ATen.h>
#include <torch/optim/adamw.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends.hpp"
#include "comm/decorators/staged_communicator.hpp"
#include "comm/mpi/mpi_communicator.hpp"
#include "parallel/zero/sharding.hpp"
#include "step/model/model_core.hpp"
#include "step/optimizer/fused_step.hpp"
#include "step/optimizer/sharded_optimizer.hpp"
#include "support/far_device.hpp"
#include "unit/accelerator/zero/zero_fixture.hpp"
#include "unit/paging/fixtures.hpp"

namespace hortator::test {

enum class Home { in_memory, in_host, in_file };

struct FarCourse {
  int stage = 3;
  c10::Device device = far_device;
  bool over_nccl = false;      ///< otherwise through the host, or by plain MPI
  bool is_replicated = false;  ///< each rank is a group of its own
  bool comes_from_host = true;
  Home parameters = Home::in_memory;
  Home moments = Home::in_memory;
  at::ScalarType type = at::kFloat;
  std::vector<std::string> keep_resident = {};
};

inline std::unique_ptr<comm::Communicator> communicator_of(const FarCourse& course) {
  if (course.over_nccl)
    return comm::make_nccl_communicator(mpi::Communicator::world(), course.device, std::chrono::seconds(30));
  auto plain = std::make_unique<comm::MpiCommunicator>(mpi::Communicator::world());
  if (course.device.is_cpu()) return plain;
  return std::make_unique<comm::StagedCommunicator>(std::move(plain), course.device);
}

inline parallel::ArrayPlacement residence_of(Home home, c10::Device device) {
  parallel::ArrayPlacement residence{.device = device, .in_host = home == Home::in_host};
  if (home == Home::in_file)
    residence.folder = testing::folder("far_zero" + std::to_string(mpi::Communicator::world().rank()));
  return residence;
}

/// A model, its ranks and its optimizer, connected as by an Accelerator.
class FarTraining {
 public:
  explicit FarTraining(const FarCourse& course)
      : course_(course),
        communicator_(communicator_of(course)),
        group_(course.is_replicated ? communicator_->split(host_.rank(), 0) : nullptr),
        sharding_{
            .stage = course.stage,
            .ranks = {.group = group_ ? *group_ : *communicator_,
                      .replicas = group_ ? communicator_.get() : nullptr,
                      .host = &host_},
            .masters = parallel::Masters::fp32,
            .parameters = residence_of(course.stage == 3 ? course.parameters : Home::in_memory, course.device),
            .moments = residence_of(course.moments, course.device),
            .shards_parameters = course.stage == 3 && !course.device.is_cpu() && communicator_->size() > 1 && !group_,
            .keep_resident = course.keep_resident},
        net_(course.type) {
    options_.bucket_cap_mb = 3e-3;
    if (sharding_.pages_parameters() && course.comes_from_host) {
      for (auto& buffer : net_->buffers()) buffer.set_data(buffer.to(course.device));
    } else {
      net_->to(course.device);
    }
    adamw_.emplace(distinct(*net_), torch::optim::AdamWOptions(1e-2).weight_decay(0.1));
    model_ = step::ModelCore::prepare(*net_, "model", std::make_shared<step::AcceleratorSession>(),
                                      parallel::DataParallel{.communicator = *communicator_,
                                                             .host = host_,
                                                             .options = options_,
                                                             .pass = pass_,
                                                             .signals = parallel::SignalPath::from_host_to_host,
                                                             .sharding = &sharding_,
                                                             .device = course.device});
    optimizer_.emplace(*adamw_, course.stage < 2, sharding_.moments, host_);
    optimizer_->take_over(*model_->sharded());
  }

  double step(int number) {
    model_->before_forward();
    const auto place = static_cast<double>(number * host_.size() + host_.rank());
    const auto input = at::sin(at::arange(42, at::kFloat).view({6, 7}) * 0.37 + place).to(course_.type);
    const auto output = net_->forward(input.to(course_.device));
    const auto loss = at::mse_loss(output, at::full_like(output, 0.3));
    loss.backward();
    optimizer_->before_step();
    step::step(*adamw_, step::StepKernel::own);
    optimizer_->after_step();
    model_->zero_grad();
    return loss.item<double>();
  }

  /// Gives the parameters memory of their own, and the optimizer its whole state. @collective
  std::vector<at::Tensor> end() {
    model_->retire();
    optimizer_->give_back();
    const auto sharded = model_->release();
    sharded->release();
    return copies_of(*net_);
  }

  Shardable& net() { return net_; }
  at::Tensor mean_of(const at::Tensor& parameter) {
    auto& state = adamw_->state().at(parameter.unsafeGetTensorImpl());
    return static_cast<torch::optim::AdamWParamState&>(*state).exp_avg();
  }

 private:
  FarCourse course_;
  mpi::Communicator host_ = mpi::Communicator::world();
  std::unique_ptr<comm::Communicator> communicator_;
  std::unique_ptr<comm::Communicator> group_;
  parallel::Sharding sharding_;
  DistributedDataParallelOptions options_;
  parallel::BackwardPass pass_;
  Shardable net_;
  std::optional<torch::optim::AdamW> adamw_;
  std::shared_ptr<step::ModelCore> model_;
  std::optional<step::ShardedOptimizer> optimizer_;
};

}  // namespace hortator::test

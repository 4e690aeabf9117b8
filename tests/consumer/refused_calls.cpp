// Calls that must not compile, each with the message that the compiler must print. Compiled by refused_calls.sh.
#include <torch/nn/modules/linear.h>
#include <torch/optim/schedulers/reduce_on_plateau_scheduler.h>
#include <torch/optim/schedulers/step_lr.h>
#include <torch/optim/sgd.h>

#include <hortator/accelerator.hpp>
#include <hortator/datasets/tensor_dataset.hpp>

void refused(hortator::Accelerator& accelerator, torch::nn::Linear& net, torch::optim::SGD& sgd,
             const hortator::TensorDataset<1>& dataset) {
  torch::optim::ReduceLROnPlateauScheduler plateau(sgd);
  accelerator.prepare(torch::optim::SGD(net->parameters(), 0.1));  // refused: prepare() borrows an optimizer
  accelerator.prepare(net, std::move(sgd));                        // refused: prepare() borrows an optimizer
  accelerator.prepare(torch::nn::LinearImpl(1, 1));                // refused: prepare() borrows a module
  accelerator.prepare(plateau);  // refused: prepare() cannot take torch::optim's ReduceLROnPlateauScheduler
  accelerator.prepare(torch::optim::StepLR(sgd, 1));  // refused: prepare() borrows a scheduler
  accelerator.prepare(dataset);                       // refused: prepare() takes loaders, not data sets
  accelerator.prepare(7);                             // refused: prepare() takes torch::nn modules
  accelerator.prepare();                              // refused: prepare() needs something to prepare
}

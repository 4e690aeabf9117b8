#pragma once

#include <torch/optim/optimizer.h>

#include <cstdint>
#include <hortator/export.hpp>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace hortator {

/// Declares that an optimizer steps element by element: the step of a slice of a parameter is that slice of the
/// parameter's step. ZeRO then shards it. Derive from it beside your optimizer's own base:
///
///     class Signum : public hortator::NamedOptimizer, public hortator::ElementwiseOptimizer { ... };
///
/// An optimizer that looks at norms, rows or whole parameters must not declare it: its steps would silently differ.
/// Hortator shards and saves the states and options of NamedOptimizer and of torch::optim's own types; ZeRO refuses
/// others by name.
class HORTATOR_API ElementwiseOptimizer {
 public:
  ElementwiseOptimizer() = default;
  ElementwiseOptimizer(const ElementwiseOptimizer&) = default;
  ElementwiseOptimizer& operator=(const ElementwiseOptimizer&) = default;
  virtual ~ElementwiseOptimizer();
};

/// An optimizer that trains at other weights than those to evaluate (schedule-free ones). Call both through the
/// prepared handle, Optimizer::train() and Optimizer::eval(), so that they work under ZeRO as well.
class HORTATOR_API TrainEvalOptimizer {
 public:
  TrainEvalOptimizer() = default;
  TrainEvalOptimizer(const TrainEvalOptimizer&) = default;
  TrainEvalOptimizer& operator=(const TrainEvalOptimizer&) = default;
  virtual ~TrainEvalOptimizer();
  virtual void train() = 0;  ///< puts the weights to train into the parameters; does nothing if they are there
  virtual void eval() = 0;   ///< puts the weights to evaluate and to keep into the parameters
};

/// The options of a parameter group, by name. All numbers are doubles; "lr" is the learning rate.
class HORTATOR_API NamedOptions : public torch::optim::OptimizerCloneableOptions<NamedOptions> {
 public:
  using Numbers = std::map<std::string, double, std::less<>>;
  /// `moments`: the names of the tensors of the parameter's shape that a MomentState has, and `scalars`: of its
  /// numbers.
  explicit NamedOptions(Numbers numbers, std::vector<std::string> moments = {}, std::vector<std::string> scalars = {});

  double get(std::string_view name) const;  ///< throws for a name that the optimizer does not have
  void set(std::string_view name, double value);
  double get_lr() const override { return get("lr"); }
  void set_lr(double value) override { set("lr", value); }

  Numbers& numbers() { return numbers_; }
  const std::vector<std::string>& moments() const { return moments_; }
  const std::vector<std::string>& scalars() const { return scalars_; }

 private:
  Numbers numbers_;
  std::vector<std::string> moments_;
  std::vector<std::string> scalars_;
};

/// What an optimizer remembers of one parameter. Under ZeRO each rank has a slice of a tensor that has the parameter's
/// shape and type. Other tensors have names that begin with what they are: "bytes/" for one of the parameter's shape
/// whose elements are bytes; "blocks/" for one fp32 number for 64 elements of the parameter, in their order; "whole/"
/// for a tensor of any shape that every rank has in full, with the same values, and that update() makes.
struct HORTATOR_API MomentState : public torch::optim::OptimizerCloneableParamState<MomentState> {
  std::int64_t step = 0;
  std::map<std::string, at::Tensor, std::less<>> moments = {};
  NamedOptions::Numbers scalars = {};
};

/// Base of optimizers whose options and states have names, so that checkpoints hold them on any number of ranks and at
/// any ZeRO stage. A derived class writes update() only.
class HORTATOR_API NamedOptimizer : public torch::optim::Optimizer {
 public:
  NamedOptimizer(const std::vector<torch::optim::OptimizerParamGroup>& groups, const NamedOptions& defaults);
  at::Tensor step(LossClosure closure = nullptr) override;
  /// Adds a group, with its own options if it has some (torch::optim's function of this name replaces them).
  void add_param_group(const torch::optim::OptimizerParamGroup& group);

 protected:
  /// Steps one parameter, or this rank's slice of it, which may be empty. Called without gradient mode. Moments are
  /// zeros at the first step; `state.step` counts this one.
  virtual void update(at::Tensor& parameter, const at::Tensor& gradient, MomentState& state,
                      const NamedOptions& options) = 0;
  /// Called before the parameters of a group are stepped.
  virtual void begin_group(NamedOptions& /*options*/) {}
  /// Steps a group: by default, update() of each parameter that has a gradient.
  virtual void step_group(torch::optim::OptimizerParamGroup& group);
  /// The state of a parameter; made, with zeros as moments, at the first call.
  MomentState& state_of(const at::Tensor& parameter, const NamedOptions& options);
  static void require_dense(const at::Tensor& gradient);  ///< throws for a sparse one
};

}  // namespace hortator

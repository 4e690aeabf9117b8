#include "simulation/settings/loss.hpp"

#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/huber_loss.h>
#include <ATen/ops/l1_loss.h>
#include <ATen/ops/mse_loss.h>

#include <memory>

#include "core/text/text.hpp"
#include "simulation/networks/torch_script.hpp"

namespace hortator::simulation {
namespace {

using Tensors = std::vector<at::Tensor>;
using PairLoss = std::function<at::Tensor(const at::Tensor& output, const at::Tensor& target)>;

at::Reduction::Reduction reduction_of(const Section& section) {
  return section.choice("reduction", {"mean", "sum"}, "mean") == "sum" ? at::Reduction::Sum : at::Reduction::Mean;
}

// mse_loss would broadcast [8, 1] against [8] to [8, 8].
void require_same_shape(const at::Tensor& output, const at::Tensor& target) {
  if (output.sizes() == target.sizes()) return;
  throw UsageError(
      {.what = text::concat("The model's output has the shape ", output.sizes(), ", its target ", target.sizes()),
       .why = "the loss compares them element by element",
       .hint = "bind a target of the output's shape"});
}

std::vector<double> weights_of(const Section& section) {
  auto weights = section.numbers("weights", {});
  for (const double weight : weights) {
    if (!(weight >= 0)) throw section.error("weights", "expected numbers from 0, one for each output");
  }
  return weights;
}

void require_weights(std::size_t weights, std::size_t outputs) {
  if (weights == 0 || weights == outputs) return;
  throw UsageError({.what = text::concat("The loss has ", text::count(static_cast<long long>(weights), "weight"),
                                         ", the model ", text::count(static_cast<long long>(outputs), "output")),
                    .hint = "give loss.weights a number for each output, 0 for one that is not compared"});
}

/// The sum of the losses of all outputs, with the section's weights. One of weight 0 is not computed: its target may be
/// anything.
Loss over_pairs(PairLoss loss, const Section& section) {
  return [loss = std::move(loss), weights = weights_of(section)](const Tensors& outputs, const Tensors& targets,
                                                                 const Tensors& arguments) {
    require_weights(weights.size(), outputs.size());
    if (outputs.size() != targets.size() || targets.empty()) {
      throw UsageError(
          {.what = text::concat("The model has ", text::count(static_cast<long long>(outputs.size()), "output"),
                                ", the batch has ", text::count(static_cast<long long>(targets.size()), "target")),
           .hint = "bind one target for each output (HORTATOR_TARGET)"});
    }
    if (!arguments.empty()) {
      throw UsageError(
          {.what = "This loss takes no further arguments (HORTATOR_LOSS_ARGUMENT)", .hint = "use a TorchScript loss"});
    }
    at::Tensor sum;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const double weight = weights.empty() ? 1 : weights[i];
      if (weight == 0) continue;
      auto one = loss(outputs[i], targets[i]);
      if (weight != 1) one = one * weight;
      sum = sum.defined() ? sum + one : one;
    }
    if (sum.defined()) return sum;
    throw UsageError({.what = "All weights of the loss are 0", .hint = "give one output a weight above 0"});
  };
}

template <typename Function>
Loss elementwise(const Section& section, Function function) {
  return over_pairs(
      [function](const at::Tensor& output, const at::Tensor& target) {
        require_same_shape(output, target);
        return function(output, target.to(output.scalar_type()));
      },
      section);
}

Loss scripted(const Section& section) {
  const auto script = std::make_shared<TorchScript>(TorchScript::load(section));
  return [script](const Tensors& outputs, const Tensors& targets, const Tensors& arguments) {
    Tensors all = outputs;
    all.insert(all.end(), targets.begin(), targets.end());
    all.insert(all.end(), arguments.begin(), arguments.end());
    const auto results = script->call(all);
    if (results.size() != 1 || results.front().numel() != 1) {
      throw UsageError({.what = "The TorchScript loss did not return one number", .hint = "return a mean or a sum"});
    }
    return results.front().reshape({});
  };
}

Loss loss_of(const std::string& type, const Section& section, const Section& model) {
  if (type == "torchscript") return scripted(section);
  if (type == "cross_entropy") {
    const double smoothing = section.number("label_smoothing", 0);
    return over_pairs(
        [smoothing](const at::Tensor& output, const at::Tensor& target) {
          const auto labels = target.is_floating_point() ? target : target.to(at::kLong);
          return at::cross_entropy_loss(output, labels, {}, at::Reduction::Mean, -100, smoothing);
        },
        section);
  }
  const auto reduction = reduction_of(section);
  if (type == "mse")
    return elementwise(section,
                       [=](const auto& output, const auto& target) { return at::mse_loss(output, target, reduction); });
  if (type == "l1")
    return elementwise(section,
                       [=](const auto& output, const auto& target) { return at::l1_loss(output, target, reduction); });
  if (type == "huber") {
    const double delta = section.number("delta", 1.0);
    return elementwise(section, [=](const auto& output, const auto& target) {
      return at::huber_loss(output, target, reduction, delta);
    });
  }
  const std::vector<std::string> known = {"mse", "l1", "huber", "cross_entropy", "torchscript"};
  throw model.error("loss", text::concat("unknown type ", text::quote(type)), text::suggestion(type, known));
}

}  // namespace

LossWeighing read_weighing(const Section& model) {
  const bool are_sums = model.has("loss") && model.typed("loss").second.text("reduction", "mean") == "sum";
  const auto asked = model.choice("weigh", {"samples", "ranks"}, "samples");
  if (!are_sums) return asked == "ranks" ? LossWeighing::by_ranks : LossWeighing::by_samples;
  if (model.has("weigh"))
    throw model.error("weigh", "sums of losses are not weighed", "leave out weigh, or reduction: sum");
  return LossWeighing::sums;
}

Loss make_loss(const Section& model) {
  if (!model.has("loss")) return loss_of("mse", Section({}, model.file(), model.path()), model);
  const auto [type, section] = model.typed("loss");
  auto loss = loss_of(type, section, model);
  section.finish();
  return loss;
}

}  // namespace hortator::simulation

#include "toy.hpp"

#include <ATen/ATen.h>

#include <cmath>
#include <iomanip>
#include <numbers>
#include <sstream>

namespace toy {
namespace {

/// Numbers from 0 to 1 that look random and fill the interval evenly.
double spread(std::int64_t i, double irrational) {
  const auto product = static_cast<double>(i) * irrational;
  return product - std::floor(product);
}

}  // namespace

hortator::Example<> Rings::get(std::int64_t i) const {
  const auto index = first_ + i;
  const auto ring = index % 3;
  const double radius = 0.5 + static_cast<double>(ring) + 0.8 * (spread(index, std::numbers::sqrt2) - 0.5);
  const double angle = 2 * std::numbers::pi * spread(index, std::numbers::phi);
  return {at::tensor({radius * std::cos(angle), radius * std::sin(angle)}, at::kFloat), at::full({}, ring, at::kLong)};
}

NetImpl::NetImpl(std::int64_t width, std::int64_t layers) {
  for (std::int64_t i = 0; i <= layers + 1; ++i) {
    const torch::nn::LinearOptions shape(i == 0 ? 2 : width, i == layers + 1 ? 3 : width);
    layers_.push_back(register_module("layer" + std::to_string(i), torch::nn::Linear(shape)));
  }
}

at::Tensor NetImpl::forward(at::Tensor points) {
  for (auto& layer : layers_) points = &layer == &layers_.front() ? layer(points) : layer(at::relu(points));
  return points;
}

std::int64_t count_numbers(const std::vector<at::Tensor>& tensors) {
  std::int64_t numbers = 0;
  for (const auto& tensor : tensors) numbers += tensor.numel();
  return numbers;
}

void report(hortator::Accelerator& accelerator, hortator::Model<Net>& model) {
  const auto samples = held_out(600);
  std::vector<at::Tensor> points, rings;
  for (std::int64_t i = 0; i < samples.size(); ++i) {
    auto sample = samples.get(i);
    points.push_back(sample.data);
    rings.push_back(sample.target);
  }
  const at::NoGradGuard no_grad;
  model.eval();
  const auto target = at::stack(rings).to(accelerator.device());
  const auto scores = model(at::stack(points).to(accelerator.device()));
  const auto right = scores.argmax(1).eq(target).sum().item<double>();
  std::ostringstream line;
  line << std::setprecision(9) << "held-out loss " << at::cross_entropy_loss(scores, target).item<float>();
  line << std::setprecision(3) << ", " << right / 6 << " % right";
  accelerator.print(line.str());
  model.train();
}

}  // namespace toy

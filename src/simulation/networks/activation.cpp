#include "simulation/networks/activation.hpp"

#include <ATen/ops/elu.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/tanh.h>

#include <map>

namespace hortator::simulation {
namespace {

const std::map<std::string, Activation> activations = {
    {"none", {[](const at::Tensor& x) { return x; }, [](at::Tensor&) {}}},
    {"relu", {[](const at::Tensor& x) { return at::relu(x); }, [](at::Tensor& x) { at::relu_(x); }}},
    {"gelu", {[](const at::Tensor& x) { return at::gelu(x); }, [](at::Tensor& x) { at::gelu_(x); }}},
    {"silu", {[](const at::Tensor& x) { return at::silu(x); }, [](at::Tensor& x) { at::silu_(x); }}},
    {"tanh", {[](const at::Tensor& x) { return at::tanh(x); }, [](at::Tensor& x) { at::tanh_(x); }}},
    {"sigmoid", {[](const at::Tensor& x) { return at::sigmoid(x); }, [](at::Tensor& x) { at::sigmoid_(x); }}},
    {"elu", {[](const at::Tensor& x) { return at::elu(x); }, [](at::Tensor& x) { at::elu_(x); }}}};

}  // namespace

Activation read_activation(const Section& section, const char* key, const std::string& absent) {
  std::vector<std::string> known;
  for (const auto& [name, function] : activations) known.push_back(name);
  return activations.at(section.choice(key, known, absent));
}

}  // namespace hortator::simulation

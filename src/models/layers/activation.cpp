#include "models/layers/activation.hpp"

#include <ATen/ATen.h>

#include <map>
#include <vector>

#include "models/config/config_fields.hpp"

namespace hortator::models {
namespace {

at::Tensor exact_gelu(const at::Tensor& x) { return at::gelu(x); }
at::Tensor tanh_gelu(const at::Tensor& x) { return at::gelu(x, "tanh"); }
at::Tensor quick_gelu(const at::Tensor& x) { return x * at::sigmoid(1.702 * x); }
at::Tensor relu(const at::Tensor& x) { return at::relu(x); }
at::Tensor squared_relu(const at::Tensor& x) { return at::relu(x).square(); }
at::Tensor silu(const at::Tensor& x) { return at::silu(x); }
at::Tensor tanh(const at::Tensor& x) { return at::tanh(x); }
at::Tensor sigmoid(const at::Tensor& x) { return at::sigmoid(x); }
at::Tensor mish(const at::Tensor& x) { return at::mish(x); }
at::Tensor identity(const at::Tensor& x) { return x; }

const std::map<std::string, Activation>& activations() {
  static const std::map<std::string, Activation> all = {{"gelu", exact_gelu},
                                                        {"gelu_python", exact_gelu},
                                                        {"gelu_new", tanh_gelu},
                                                        {"gelu_fast", tanh_gelu},
                                                        {"gelu_python_tanh", tanh_gelu},
                                                        {"gelu_pytorch_tanh", tanh_gelu},
                                                        {"quick_gelu", quick_gelu},
                                                        {"relu", relu},
                                                        {"relu2", squared_relu},
                                                        {"silu", silu},
                                                        {"swish", silu},
                                                        {"tanh", tanh},
                                                        {"sigmoid", sigmoid},
                                                        {"mish", mish},
                                                        {"linear", identity}};
  return all;
}

}  // namespace

Activation activation_named(const std::string& name) {
  const auto found = activations().find(name);
  return found == activations().end() ? nullptr : found->second;
}

Activation activation_of(const ConfigFields& fields, const std::string& name, const std::string& absent) {
  const auto value = fields.text(name, absent);
  std::vector<std::string> known;
  for (const auto& [other, function] : activations()) known.push_back(other);
  fields.require_one_of(name, value, known);
  return activation_named(value);
}

}  // namespace hortator::models

#include "step/moments/optimizer_state.hpp"

#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>
#include <torch/serialize.h>

#include <cstring>
#include <sstream>

#include "core/text/text.hpp"
#include "step/moments/moment_layout.hpp"
#include "step/moments/optimizer_fields.hpp"

namespace hortator::step {
namespace {

class OptimizerStateWriter final : public FieldVisitor {
 public:
  OptimizerStateWriter(StateDict& out, std::string prefix) : out_(out), prefix_(std::move(prefix)) {}
  void field(std::string_view name, double& value) override { out_.put(path(name), value); }
  void field(std::string_view name, std::int64_t& value) override { out_.put(path(name), value); }
  void field(std::string_view name, bool& value) override { out_.put(path(name), value); }
  void field(std::string_view name, at::Tensor& value) override {
    if (value.defined()) out_.put(path(name), value);
  }
  void field(std::string_view name, std::deque<at::Tensor>& value) override {
    out_.put(path(name) + "/count", value.size());
    for (std::size_t i = 0; i < value.size(); ++i) out_.put(text::concat(path(name), "/", i), value[i]);
  }

 private:
  std::string path(std::string_view name) const { return text::concat(prefix_, "/", name); }

  StateDict& out_;
  std::string prefix_;
};

class OptimizerStateReader final : public FieldVisitor {
 public:
  /// Floating-point tensors are converted to `type`: the parameter may have had another type when it was saved.
  OptimizerStateReader(const StateDict& in, std::string prefix, c10::Device device, at::ScalarType type)
      : in_(in), prefix_(std::move(prefix)), device_(device), type_(type) {}
  void field(std::string_view name, double& value) override { value = in_.get<double>(path(name)); }
  void field(std::string_view name, std::int64_t& value) override { value = in_.get<std::int64_t>(path(name)); }
  void field(std::string_view name, bool& value) override { value = in_.get<bool>(path(name)); }
  void field(std::string_view name, at::Tensor& value) override {
    value = in_.contains(path(name)) ? own_copy(path(name), moment_layout(name)) : at::Tensor();
  }
  void field(std::string_view name, std::deque<at::Tensor>& value) override {
    value.clear();
    const auto count = in_.get<std::size_t>(path(name) + "/count");
    for (std::size_t i = 0; i < count; ++i) value.push_back(own_copy(text::concat(path(name), "/", i), {}));
  }

 private:
  std::string path(std::string_view name) const { return text::concat(prefix_, "/", name); }
  // A tensor that only the state dictionary refers to is taken without a copy, as a loaded checkpoint's moments.
  at::Tensor own_copy(const std::string& path, MomentLayout layout) const {
    const auto value = in_.get<at::Tensor>(path);
    const bool is_shared = value.use_count() > 2 || value.storage().use_count() > 1;
    const bool converts = layout != MomentLayout::blocks && value.is_floating_point() && at::isFloatingType(type_);
    const auto type = converts ? type_ : value.scalar_type();
    return value.to(device_, type, /*non_blocking=*/false, /*copy=*/is_shared);
  }

  const StateDict& in_;
  std::string prefix_;
  c10::Device device_;
  at::ScalarType type_;
};

std::string name_of(const at::Tensor& parameter, const ParameterNames& names, std::size_t group, std::size_t index) {
  const auto found = names.find(parameter.unsafeGetTensorImpl());
  return found != names.end() ? found->second : text::concat("group_", group, "_parameter_", index);
}

// Calls visit(group, parameter, "state/<name>") for each parameter.
template <typename Visit>
void for_each_parameter(const torch::optim::Optimizer& optimizer, const ParameterNames& names, const Visit& visit) {
  const auto& groups = optimizer.param_groups();
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const auto& parameters = groups[g].params();
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      visit(g, parameters[i], "state/" + name_of(parameters[i], names, g, i));
    }
  }
}

std::string opaque_bytes(const torch::optim::Optimizer& optimizer) {
  torch::serialize::OutputArchive archive;
  optimizer.save(archive);
  std::ostringstream bytes;
  archive.save_to(bytes);
  return std::move(bytes).str();
}

at::Tensor tensor_of(const std::string& bytes) {
  auto tensor = at::empty({static_cast<std::int64_t>(bytes.size())}, at::kByte);
  std::memcpy(tensor.data_ptr(), bytes.data(), bytes.size());
  return tensor;
}

void load_opaque(torch::optim::Optimizer& optimizer, const at::Tensor& bytes) {
  std::istringstream in(
      std::string(static_cast<const char*>(bytes.data_ptr()), static_cast<std::size_t>(bytes.numel())));
  torch::serialize::InputArchive archive;
  archive.load_from(in);
  optimizer.load(archive);
}

void check_sizes(const torch::optim::Optimizer& optimizer, const ParameterNames& names, const StateDict& state) {
  for_each_parameter(optimizer, names, [&](std::size_t g, const at::Tensor& parameter, const std::string& prefix) {
    if (!has_moments_by_parameter(optimizer.param_groups()[g].options())) return;
    const auto moments = state.under(prefix);
    for (const auto& [field, value] : moments.values()) {
      const auto* tensor = std::get_if<at::Tensor>(&value);
      const auto layout = moment_layout(field);
      if (tensor == nullptr || layout == MomentLayout::whole) continue;
      const bool fits = layout == MomentLayout::blocks
                            ? tensor->sizes() == at::IntArrayRef({blocks_of(parameter.numel())})
                            : tensor->sizes() == parameter.sizes();
      if (!fits) {
        throw Error({.what = text::concat(prefix, "/", field, " has shape [", text::join(tensor->sizes()),
                                          "], its parameter has [", text::join(parameter.sizes()), "]"),
                     .why = "the checkpoint belongs to another model",
                     .hint = "build the model that was saved"});
      }
    }
  });
}

using Options = std::vector<std::unique_ptr<torch::optim::OptimizerOptions>>;
using StateByTensor = std::map<void*, std::unique_ptr<torch::optim::OptimizerParamState>>;

Options read_options(const torch::optim::Optimizer& optimizer, const StateDict& state) {
  Options all;
  for (const auto& group : optimizer.param_groups()) {
    OptimizerStateReader reader(state, text::concat("groups/", all.size()), at::kCPU, at::kFloat);
    all.push_back(group.options().clone());
    visit_fields(*all.back(), reader);
  }
  return all;
}

StateByTensor read_moments(const torch::optim::Optimizer& optimizer, const ParameterNames& names,
                           const StateDict& state) {
  StateByTensor all;
  for_each_parameter(optimizer, names, [&](std::size_t g, const at::Tensor& parameter, const std::string& prefix) {
    if (state.under(prefix).empty()) return;
    auto fresh = make_state(optimizer.param_groups()[g].options());
    OptimizerStateReader reader(state, prefix, parameter.device(), parameter.scalar_type());
    visit_fields(*fresh, reader);
    all[parameter.unsafeGetTensorImpl()] = std::move(fresh);
  });
  return all;
}

}  // namespace

bool saves_by_parameter(const torch::optim::Optimizer& optimizer) {
  for (const auto& group : optimizer.param_groups()) {
    if (make_state(group.options()) == nullptr) return false;
  }
  return true;
}

bool saves_nothing(const torch::optim::Optimizer& optimizer) {
  if (saves_by_parameter(optimizer)) return false;
  std::istringstream saved(opaque_bytes(optimizer));
  torch::serialize::InputArchive archive;
  archive.load_from(saved);
  return archive.keys().empty();
}

StateDict save_optimizer(const torch::optim::Optimizer& optimizer, const ParameterNames& names) {
  StateDict out;
  if (!saves_by_parameter(optimizer)) {
    out.put("opaque", tensor_of(opaque_bytes(optimizer)));
    return out;
  }
  for (std::size_t g = 0; g < optimizer.param_groups().size(); ++g) {
    const auto options = optimizer.param_groups()[g].options().clone();
    OptimizerStateWriter writer(out, text::concat("groups/", g));
    visit_fields(*options, writer);
  }
  for_each_parameter(optimizer, names, [&](std::size_t, const at::Tensor& parameter, const std::string& prefix) {
    const auto found = optimizer.state().find(parameter.unsafeGetTensorImpl());
    if (found == optimizer.state().end()) return;
    OptimizerStateWriter writer(out, prefix);
    visit_fields(*found->second, writer);
  });
  return out;
}

void check_optimizer(const torch::optim::Optimizer& optimizer, const ParameterNames& names, const StateDict& state) {
  if (saves_by_parameter(optimizer) == state.contains("opaque")) {
    throw Error({.what = "The checkpoint holds the state of another type of optimizer",
                 .why = "its moments do not have the same meaning",
                 .hint = "construct the type of optimizer that was saved"});
  }
  if (state.contains("opaque")) return;
  check_sizes(optimizer, names, state);
  read_options(optimizer, state);
}

void load_optimizer(torch::optim::Optimizer& optimizer, const ParameterNames& names, const StateDict& state) {
  check_optimizer(optimizer, names, state);
  if (state.contains("opaque")) return load_opaque(optimizer, state.get<at::Tensor>("opaque"));
  auto options = read_options(optimizer, state);
  auto moments = read_moments(optimizer, names, state);
  for (std::size_t g = 0; g < options.size(); ++g) optimizer.param_groups()[g].set_options(std::move(options[g]));
  optimizer.state().clear();
  for (auto& [parameter, moment] : moments) optimizer.state()[parameter] = std::move(moment);
}

}  // namespace hortator::step

#include "simulation/networks/networks.hpp"

#include <hortator/error.hpp>

#include <functional>
#include <map>
#include <string>

#include "core/text/text.hpp"
#include "simulation/networks/compiled_package.hpp"
#include "simulation/networks/exported_file.hpp"
#include "simulation/networks/force_field.hpp"
#include "simulation/networks/fourier.hpp"
#include "simulation/networks/graph.hpp"
#include "simulation/networks/mlp.hpp"
#include "simulation/networks/pretrained.hpp"
#include "simulation/networks/registered.hpp"
#include "simulation/networks/standardized.hpp"
#include "simulation/networks/torch_script.hpp"
#include "simulation/networks/transformer.hpp"
#include "simulation/networks/unet.hpp"

namespace hortator::simulation {
namespace {

template <typename N>
std::shared_ptr<Network> made_of(const Section& section) {
  return std::make_shared<N>(section);
}

const std::map<std::string, std::function<std::shared_ptr<Network>(const Section&)>> makers = {
    {"mlp", made_of<Mlp>},
    {"unet", made_of<Unet>},
    {"fno", made_of<FourierOperator>},
    {"transformer", made_of<Transformer>},
    {"graph", made_of<GraphNetwork>},
    {"pretrained", made_of<Pretrained>},
    {"exported", made_of<ExportedFile>},
    {"aotinductor", made_of<CompiledPackage>},
    {"torchscript", [](const Section& section) { return std::make_shared<TorchScript>(TorchScript::load(section)); }},
    {"module", made_of<Registered>}};

/// Module::to() would also convert integers, booleans and complex numbers: indices, masks, spectra.
void convert_floating_point(const torch::nn::Module& module, at::ScalarType type) {
  const at::NoGradGuard no_grad;
  for (const auto& tensors : {module.parameters(), module.buffers()}) {
    for (const auto& tensor : tensors) {
      if (tensor.defined() && tensor.is_floating_point()) tensor.set_data(tensor.to(type));
    }
  }
}

/// The network with forces as its second output, which come from its energy.
std::shared_ptr<Network> with_forces(std::shared_ptr<Network> network, const Section& model) {
  const auto shape = network->features();
  if (shape && shape->outputs != 1) {
    throw model.error("forces",
                      text::concat("the model has ", shape->outputs, " output features, and an energy is one"),
                      "give the model one output feature");
  }
  if (model.flag("normalize", false)) {
    throw model.error("forces", "forces and normalize exclude each other: statistics of energies do not scale forces",
                      "leave normalize out, and choose units in which energies and forces are about 1");
  }
  return std::make_shared<ForceField>(std::move(network));
}

}  // namespace

at::ScalarType scalar_type_of(const Section& model) {
  const auto name = model.choice("dtype", {"float32", "float64", "bfloat16"}, "float32");
  if (name == "float64") return at::kDouble;
  if (name == "float32") return at::kFloat;
  if (!model.has("optimizer")) return at::kBFloat16;
  throw model.error("dtype", "a model in bfloat16 only infers: small updates would be lost in rounding",
                    "leave dtype out and set mixed_precision: bf16, or leave the optimizer out");
}

std::shared_ptr<Network> make_network(const Section& model) {
  const auto type = model.text("type");
  const auto found = makers.find(type);
  if (found == makers.end()) {
    std::vector<std::string> known;
    for (const auto& [name, maker] : makers) known.push_back(name);
    throw model.error("type", text::concat("unknown type ", text::quote(type)), text::suggestion(type, known));
  }
  auto network = found->second(model);
  if (model.flag("forces", false)) network = with_forces(std::move(network), model);
  if (model.flag("normalize", false)) {
    const auto shape = network->features();
    if (!shape) {
      throw model.error("normalize", "only models that know their features can be normalised",
                        "use mlp (without flatten), unet, fno or transformer, or normalise within the module");
    }
    network = std::make_shared<Standardized>(std::move(network), *shape);
  }
  if (model.has("dtype")) {
    convert_floating_point(*network, scalar_type_of(model));
  }
  return network;
}

}  // namespace hortator::simulation

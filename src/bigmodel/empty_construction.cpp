#include <hortator/bigmodel/big_models.hpp>

#include "paging/deferred/construction_scope.hpp"
#include "paging/deferred/tensor_values.hpp"

namespace hortator {
namespace {

constexpr const char* empty =
    "The tensor has no values yet (it was made by init_empty_weights). Load a checkpoint into the model first";

}  // namespace

namespace detail {

struct EmptyConstruction::Scope {
  paging::ConstructionScope construction{paging::Recording::Order::any};
};

EmptyConstruction::EmptyConstruction() : scope_(std::make_unique<Scope>()) {}
EmptyConstruction::~EmptyConstruction() = default;

// Buffers first: a buffer that shares a parameter's memory must lose it with the parameter, so that reads throw.
void EmptyConstruction::finish(torch::nn::Module& module, const EmptyOptions& options) {
  for (const auto& buffer : module.buffers())
    options.include_buffers ? paging::drop_values(buffer, empty) : paging::settle(buffer);
  for (const auto& parameter : module.parameters()) paging::drop_values(parameter, empty);
}

}  // namespace detail

bool is_empty_weight(const at::Tensor& tensor) { return tensor.defined() && paging::lacks_memory(tensor); }

}  // namespace hortator

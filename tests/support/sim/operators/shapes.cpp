#include "support/sim/operators/shapes.hpp"

#include <ATen/EmptyTensor.h>

#include <cstring>
#include <mutex>
#include <unordered_map>

#include "support/sim/generator.hpp"
#include "support/sim/near.hpp"
#include "support/sim/operators/argument_key.hpp"
#include "support/sim/operators/plain_scope.hpp"

namespace hortator::sim {
namespace {

enum class Means { meta, dry_run };

at::Tensor stand_in(const at::Tensor& tensor, Means means) {
  if (!tensor.defined()) return tensor;
  at::Tensor made;
  if (means == Means::meta) {
    made = at::Tensor(at::detail::empty_strided_meta(tensor.sizes(), tensor.strides(), tensor.scalar_type()));
  } else {
    made = at::Tensor(at::detail::empty_strided_cpu(tensor.sizes(), tensor.strides(), tensor.scalar_type()));
    if (made.numel() > 0) std::memset(made.mutable_data_ptr(), 0, made.storage().nbytes());
  }
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) made.unsafeGetTensorImpl()->set_wrapped_number(true);
  return made;
}

torch::jit::Stack stand_ins(const torch::jit::Stack& arguments, Means means) {
  const c10::Device device(means == Means::meta ? c10::kMeta : c10::kCPU);
  torch::jit::Stack made;
  for (const auto& argument : arguments) {
    if (argument.isDevice())
      made.emplace_back(device);
    else if (argument.isGenerator())
      made.emplace_back(cpu_generator({}));
    else
      made.push_back(with_tensors(argument, [&](const at::Tensor& tensor) { return stand_in(tensor, means); }));
  }
  return made;
}

TensorShape shape_of(const at::Tensor& tensor) {
  if (!tensor.defined()) return {};
  return {tensor.sizes().vec(), tensor.strides().vec(), tensor.scalar_type(), tensor.storage_offset(), true};
}

ResultShapes run(const c10::OperatorHandle& op, const torch::jit::Stack& arguments, Means means) {
  const PlainScope scope;
  const auto before = stand_ins(arguments, means);
  auto stack = before;
  op.redispatchBoxed(c10::DispatchKeySet(means == Means::meta ? c10::DispatchKey::Meta : c10::DispatchKey::CPU),
                     &stack);
  ResultShapes shapes;
  for (const auto& value : stack) {
    auto& result = shapes.results.emplace_back();
    result.is_list = value.isTensorList();
    for_tensors(value, [&](const at::Tensor& tensor) { result.tensors.push_back(shape_of(tensor)); });
  }
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (!op.schema().arguments()[i].is_out()) continue;
    for_tensors(before[i], [&](const at::Tensor& tensor) { shapes.outputs.push_back(tensor.sizes().vec()); });
  }
  return shapes;
}

// LibTorch says of many operators that they have a Meta kernel which exists in Python only: one has to try.
ResultShapes find(const c10::OperatorHandle& op, OperatorFacts& facts, const torch::jit::Stack& arguments) {
  if (!facts.no_meta) {
    try {
      return run(op, arguments, Means::meta);
    } catch (const c10::Error&) {
      facts.no_meta = true;
    }
  }
  return run(op, arguments, Means::dry_run);
}

}  // namespace

std::shared_ptr<const ResultShapes> shapes_of(const c10::OperatorHandle& op, OperatorFacts& facts,
                                              const torch::jit::Stack& arguments) {
  static auto& lock = *new std::mutex;
  static auto& known = *new std::unordered_map<std::string, std::shared_ptr<const ResultShapes>>;
  constexpr std::size_t max_known = 100'000;
  std::string key = facts.name;
  for (const auto& argument : arguments) {
    if (!append_key(key, argument)) return std::make_shared<const ResultShapes>(find(op, facts, arguments));
  }
  {
    const std::scoped_lock held(lock);
    if (const auto found = known.find(key); found != known.end()) return found->second;
  }
  auto shapes = std::make_shared<const ResultShapes>(find(op, facts, arguments));
  const std::scoped_lock held(lock);
  if (known.size() < max_known) known.emplace(std::move(key), shapes);
  return shapes;
}

}  // namespace hortator::sim

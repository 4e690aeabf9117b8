#include "support/sim/operators/operators.hpp"

#include <ATen/ops/clone.h>

#include <memory>
#include <utility>

#include "support/sim/current.hpp"
#include "support/sim/generator.hpp"
#include "support/sim/near.hpp"
#include "support/sim/operators/plain_scope.hpp"
#include "support/sim/state.hpp"
#include "support/sim/tensors.hpp"

namespace hortator::sim {
namespace {

using c10::IValue;
using torch::jit::Stack;

/// One call of an operator, on its way to a stream.
class Call {
 public:
  Call(const c10::OperatorHandle& op, Stack arguments)
      : op_(op), facts_(facts_of(op)), arguments_(std::move(arguments)), device_(device_of_arguments()) {}

  Stack submit_it() {
    const PlainScope scope;
    if (needs_shapes()) shapes_ = shapes_of(op_, facts_, arguments_);
    resize_outputs();
    for (std::size_t i = 0; i < op_.schema().returns().size(); ++i) results_.push_back(result(i));
    if (is_view_) return results_;
    return shapes_ || !facts_.makes_tensors ? submit_later() : submit_and_wait();
  }

 private:
  bool needs_shapes() const {
    return !facts_.waits && !(facts_.waits_for_masks && has_mask()) && (facts_.makes_tensors || facts_.has_outputs);
  }
  bool has_mask() const {
    bool found = false;
    for (const auto& one : arguments_) {
      if (!one.isOptionalTensorList()) continue;
      for_tensors(one, [&](const at::Tensor& tensor) {
        found = found || tensor.scalar_type() == at::kBool || tensor.scalar_type() == at::kByte;
      });
    }
    return found;
  }
  bool is_written(std::size_t i) const {
    return facts_.memory.is_written(i, c10::ArrayRef<const IValue>(arguments_.data(), arguments_.size()));
  }
  const c10::Argument& argument(std::size_t i) const { return op_.schema().arguments()[i]; }

  int device_of_arguments() const {
    int found = -1;
    for (const auto& one : arguments_) {
      for_tensors(one, [&](const at::Tensor& tensor) {
        if (!is_far(tensor)) return;
        TORCH_CHECK(found < 0 || found == tensor.device().index() || tensor.dim() == 0,
                    "Expected all tensors to be on the same device, but got sim:", found, " and ", tensor.device(),
                    " in ", facts_.name);
        if (found < 0) found = tensor.device().index();
      });
      if (one.isDevice() && found < 0) found = one.toDevice().index();
    }
    return found < 0 ? current_device() : found;
  }

  void resize_outputs() const {
    if (!shapes_) return;
    auto sizes = shapes_->outputs.begin();
    for (std::size_t i = 0; i < arguments_.size(); ++i) {
      if (!argument(i).is_out()) continue;
      for_tensors(arguments_[i], [&](const at::Tensor& tensor) {
        if (tensor.sizes() != at::IntArrayRef(*sizes)) resize_tensor(tensor, *sizes);
        ++sizes;
      });
    }
  }

  const IValue& argument_of(const c10::Argument& result) const {
    for (std::size_t i = 0; i < arguments_.size(); ++i) {
      const auto* const alias = argument(i).alias_info();
      if (alias != nullptr && *alias == *result.alias_info()) return arguments_[i];
    }
    TORCH_CHECK(false, "sim: no argument of ", facts_.name, " is what it returns");
  }

  IValue result(std::size_t number) {
    const auto& returned = op_.schema().returns()[number];
    const auto is_new = returned.alias_info() == nullptr;
    is_new_.push_back(is_new);
    if (!is_new && returned.alias_info()->isWrite()) return argument_of(returned);
    if (!shapes_) return {};
    c10::List<at::Tensor> list;
    for (const auto& shape : shapes_->results[number].tensors)
      list.push_back(is_new ? new_result(shape) : view_result(returned, shape));
    if (shapes_->results[number].is_list) return list;
    return list.get(0);
  }
  at::Tensor view_result(const c10::Argument& returned, const TensorShape& shape) {
    is_view_ = true;
    return make_view(argument_of(returned).toTensor(), shape);
  }
  at::Tensor new_result(const TensorShape& shape) {
    if (!shape.is_defined) return new_.emplace_back();
    auto made = make_tensor(shape, device_);
    add_use(uses_, made, true);
    new_.push_back(near_view(made));
    return made;
  }

  // Tensors of the CPU are copied now: the caller may change them before the operator runs.
  at::Tensor near_argument(const at::Tensor& tensor, bool writes) {
    if (!tensor.defined()) return tensor;
    if (is_far(tensor)) {
      add_use(uses_, tensor, writes);
      return near_view(tensor);
    }
    TORCH_CHECK(tensor.dim() == 0 || facts_.name.find("index") != std::string::npos,
                "Expected all tensors to be on the same device, but got sim:", device_, " and ", tensor.device(),
                " in ", facts_.name);
    if (writes) return tensor;
    auto copy = at::clone(tensor);
    if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) copy.unsafeGetTensorImpl()->set_wrapped_number(true);
    return copy;
  }

  Task task(std::shared_ptr<Stack> returned) {
    Stack near;
    for (std::size_t i = 0; i < arguments_.size(); ++i) {
      if (arguments_[i].isDevice()) {
        near.emplace_back(c10::Device(c10::kCPU));
        continue;
      }
      near.push_back(
          with_tensors(arguments_[i], [&](const at::Tensor& tensor) { return near_argument(tensor, is_written(i)); }));
    }
    TORCH_CHECK(!facts_.is_random || facts_.generator >= 0, "sim: ", facts_.name, " has no generator");
    Task made{.name = facts_.name, .uses = std::move(uses_), .run = {}};
    if (facts_.is_random) made.dice = roll_dice();
    made.run = [op = op_, near = std::move(near), to = std::move(new_), is_new = is_new_,
                generator = facts_.is_random ? facts_.generator : -1, returned](const Dice& dice) {
      const PlainScope scope;
      auto stack = near;
      if (generator >= 0) stack[static_cast<std::size_t>(generator)] = cpu_generator(dice);
      op.redispatchBoxed(cpu_keys, &stack);
      if (returned)
        *returned = std::move(stack);
      else
        fill(to, is_new, stack);
    };
    return made;
  }

  Dice roll_dice() const {
    const auto& given = arguments_[static_cast<std::size_t>(facts_.generator)];
    return roll(given.isNone() ? at::Generator() : given.toGenerator(), current_stream(device_), 1);
  }

  static void fill(const std::vector<at::Tensor>& to, const std::vector<char>& is_new, const Stack& from) {
    auto target = to.begin();
    for (std::size_t i = 0; i < is_new.size(); ++i) {
      if (!is_new[i]) continue;
      for_tensors(from[i], [&](const at::Tensor& tensor) {
        const auto& into = *target++;
        if (!tensor.defined() || !into.defined()) return;
        TORCH_CHECK(into.sizes() == tensor.sizes() && into.scalar_type() == tensor.scalar_type(),
                    "another shape than foreseen: ", tensor.sizes(), " instead of ", into.sizes());
        into.copy_(tensor);
      });
    }
  }

  Stack submit_later() {
    auto later = task(nullptr);
    submit(current_stream(device_), std::move(later));
    return results_;
  }

  Stack submit_and_wait() {
    auto returned = std::make_shared<Stack>();
    submit(current_stream(device_), task(returned));
    {
      const std::scoped_lock lock(state_lock());
      ++mutable_counts().copies_to_host;
    }
    wait_for_stream(current_stream(device_));
    for (std::size_t i = 0; i < is_new_.size(); ++i) {
      if (is_new_[i])
        results_[i] = with_tensors((*returned)[i], [&](const at::Tensor& tensor) { return to_device(tensor); });
    }
    return results_;
  }
  at::Tensor to_device(const at::Tensor& tensor) {
    if (!tensor.defined()) return tensor;
    auto far = make_tensor({tensor.sizes().vec(), tensor.strides().vec(), tensor.scalar_type(), 0, true}, device_);
    std::vector<BlockUse> uses;
    add_use(uses, far, true);
    submit(current_stream(device_),
           {.name = facts_.name, .uses = std::move(uses), .run = [tensor, to = near_view(far)](const Dice&) {
              const PlainScope scope;
              to.copy_(tensor);
            }});
    return far;
  }

  c10::OperatorHandle op_;
  OperatorFacts& facts_;
  Stack arguments_;
  int device_;
  std::shared_ptr<const ResultShapes> shapes_;
  std::vector<BlockUse> uses_;
  std::vector<at::Tensor> new_;  // the results that are new, as the CPU sees them
  std::vector<char> is_new_;
  Stack results_;
  bool is_view_ = false;
};

}  // namespace

void run_operator(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const auto arguments = op.schema().arguments().size();
  Stack own(stack->end() - static_cast<std::ptrdiff_t>(arguments), stack->end());
  torch::jit::drop(*stack, arguments);
  for (auto& result : Call(op, std::move(own)).submit_it()) stack->push_back(std::move(result));
}

}  // namespace hortator::sim

#include "parallel/pipeline/plain/plain_pass.hpp"

#include <ATen/core/enum_tag.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <hortator/error.hpp>
#include <utility>

#include "core/text/text.hpp"
#include "mpi/rehearsed_world.hpp"
#include "parallel/pipeline/rehearsed_stages.hpp"

namespace hortator::parallel {
namespace {

thread_local PlainPass* passing = nullptr;
thread_local int unseeded = 0;

/// A result that had a shape only, with what a message has brought.
struct Arrival {
  at::Tensor value;
};

void give_value(const at::Tensor& value, const at::Tensor& received) {
  if (value.sizes() != received.sizes()) {
    throw UsageError(
        {.what = text::concat("A stage of the pipeline got a tensor of [", text::join(received.sizes(), ", "),
                              "], where its own forward has [", text::join(value.sizes(), ", "), "]"),
         .why = "all ranks run the same forward with the same batch",
         .hint = "give all ranks along the pipeline equal batches, and let forward depend on nothing else"});
  }
  auto* const impl = value.unsafeGetTensorImpl();
  impl->set_storage_and_dtype(received.storage(), received.dtype());
  impl->set_sizes_and_strides(received.sizes(), received.strides(), received.storage_offset());
}

/// Gives a result its value, and the history by which its gradient goes back to the stage before.
struct Arrive : torch::autograd::Function<Arrive> {
  static at::Tensor forward(torch::autograd::AutogradContext* /*context*/, const at::Tensor& received,
                            const Arrival& arrival) {
    give_value(arrival.value, received);
    return arrival.value;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* /*context*/,
                                                 torch::autograd::variable_list gradients) {
    return {std::move(gradients.front()), at::Tensor()};
  }
};

void refuse_inner_begin() {
  if (at::GradMode::is_enabled()) return;
  throw UsageError({.what = "A stage of the pipeline begins within a function that computes without gradients",
                    .why = "its gradient would not reach the stage before",
                    .hint = "leave at::NoGradGuard and autograd functions of your own out of forward, or derive the "
                            "module from hortator::HasPipelineLayers"});
}

[[noreturn]] void throw_other_way(const std::string& op) {
  throw UsageError({.what = text::concat("Forward took another way with one micro-batch than with the first: ", op),
                    .why = "the stages of a pipeline exchange what the first way needs",
                    .hint = "let the operators of forward depend on nothing but the sizes of the whole batch"});
}

}  // namespace

PlainPass::PlainPass(const Route* route, int stage, StagePass::Border border)
    : route_(route),
      stage_(stage),
      border_(std::move(border)),
      with_gradients_(at::GradMode::is_enabled()),
      former_(std::exchange(passing, this)),
      operators_(&run) {}

PlainPass::~PlainPass() { passing = former_; }

void PlainPass::run(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  auto& pass = *passing;
  const auto number = pass.next_;
  const auto count = pass.route_ == nullptr ? 0 : static_cast<std::int64_t>(pass.route_->steps.size());
  if (number >= count) return pass.compute(op, keys, stack);  // one stage, or what comes after the program's function
  pass.follow(op);
  if (pass.stage_ > 0 && number == pass.route_->begins[static_cast<std::size_t>(pass.stage_)]) pass.enter();
  if (pass.stage_ + 1 < pass.route_->stages() &&
      number == pass.route_->begins[static_cast<std::size_t>(pass.stage_) + 1])
    pass.leave();
  const bool is_here = pass.route_->stage_of(number) == pass.stage_;
  if (is_here || !pass.route_->steps[static_cast<std::size_t>(number)].is_staged) return pass.compute(op, keys, stack);
  ++pass.next_;
  pass.values_.run_on_shapes(op, number, stack);
}

void PlainPass::follow(const c10::OperatorHandle& op) const {
  if (route_->steps[static_cast<std::size_t>(next_)].op != &op.schema()) throw_other_way(op.schema().name());
}

void PlainPass::compute(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const auto number = next_++;
  if (border_.seed && unseeded == 0 && op.hasTag(at::Tag::nondeterministic_seeded)) {
    const interception::ThreadOperators::Inside inside;
    border_.seed(number);
  }
  interception::ThreadOperators::run_as_always(op, keys, stack);
  if (route_ == nullptr) return;
  ValueId id{.op = number};
  for (const auto& result : tensors_of(torch::jit::last(*stack, op.schema().returns().size()))) {
    if (result.defined() && route_->carries(id)) values_.add(result, id);
    ++id.result;
  }
}

void PlainPass::enter() {
  const interception::ThreadOperators::Inside inside;
  const auto& message = route_->messages[static_cast<std::size_t>(stage_)];
  StageTensors values;
  for (const auto& id : message) values.push_back(values_.at(id));
  if (mpi::rehearsed_world()) foresee_activations(stage_, values);
  const auto received = border_.receive();
  if (received.size() != values.size()) throw_other_way("its stages send other numbers of tensors");
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!received[i].requires_grad()) {
      give_value(values[i], received[i]);
      continue;
    }
    if (with_gradients_) refuse_inner_begin();
    Arrive::apply(received[i], Arrival{values[i]});
  }
}

void PlainPass::leave() {
  const interception::ThreadOperators::Inside inside;
  StageTensors results;
  for (const auto& id : route_->messages[static_cast<std::size_t>(stage_) + 1]) results.push_back(values_.at(id));
  border_.send(results);
  throw StageEnd{};
}

bool divides_plain_forward() { return PlainSurvey::is_on() || (passing != nullptr && passing->has_several_stages()); }

UnseededScope::UnseededScope() { ++unseeded; }
UnseededScope::~UnseededScope() { --unseeded; }

}  // namespace hortator::parallel

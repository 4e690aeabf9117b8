#include <algorithm>
#include <hortator/error.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "core/text/text.hpp"
#include "interception/operator_use.hpp"
#include "interception/thread_operators.hpp"
#include "parallel/pipeline/plain/plain_pass.hpp"

namespace hortator::parallel {
namespace {

thread_local PlainSurvey* surveying = nullptr;

// Batch norms write running statistics, which their schemas do not say.
bool keeps_statistics(const c10::OperatorHandle& op) {
  const std::string_view name = op.schema().name();
  return name == "aten::batch_norm" || name == "aten::instance_norm";
}

[[noreturn]] void throw_out_of_order(const TensorStages::Entry& entry, int stage, int now) {
  throw UsageError(
      {.what = text::concat("The parameter ", text::quote(entry.name), " of stage ", stage,
                            " of the pipeline was read after stage ", now, " had begun"),
       .why = "stages have the parts of a module in the order in which they are registered, and forward runs through "
              "them once",
       .hint =
           "register the parts in the order in which forward uses them; for a tied embedding, derive the module from "
           "hortator::HasPipelineLayers and name it in used_after_layers()"});
}

[[noreturn]] void throw_written(const c10::OperatorHandle& op) {
  throw UsageError(
      {.what = text::concat(op.schema().name(), " wrote a result of one stage of the pipeline into a tensor of all"),
       .why = "only the ranks of that stage have the result",
       .hint = "make a new tensor of the results (cat, stack, where), or derive the module from "
               "hortator::HasPipelineLayers"});
}

[[noreturn]] void throw_split(const c10::OperatorHandle& op) {
  throw UsageError({.what = text::concat(op.schema().name(),
                                         " wrote to memory that a stage of the pipeline gets twice, as a "
                                         "tensor and as a view of it"),
                    .why = "each of the two is a message of its own, and only one would change",
                    .hint = "write to a copy (clone), or use the operator that returns a new tensor"});
}

}  // namespace

PlainSurvey::PlainSurvey(const TensorStages& tensors, int stages)
    : tensors_(tensors), builder_(stages), former_(std::exchange(surveying, this)), operators_(&run) {}

PlainSurvey::~PlainSurvey() { surveying = former_; }

bool PlainSurvey::is_on() { return surveying != nullptr; }

void PlainSurvey::run(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  surveying->note(op, keys, stack);
}

void PlainSurvey::begin(const TensorStages::Entry& entry, int stage) const {
  const int now = builder_.stage();
  if (stage < now) throw_out_of_order(entry, stage, now);
  if (stage <= now + 1) return;
  throw UsageError({.what = text::concat("Forward read ", text::quote(entry.name), " of stage ", stage,
                                         " of the pipeline before any parameter of stage ", now + 1, ", such as ",
                                         text::quote(tensors_.name_in(now + 1))),
                    .why = "a stage begins with the first operator that reads a parameter of it",
                    .hint = "register the parts in the order in which forward uses them, or use fewer stages"});
}

int PlainSurvey::stage_of(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments) {
  const auto& use = interception::use_of(op);
  int stage = builder_.stage();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    for (const auto& tensor : tensors_of(arguments.slice(i, 1))) {
      const auto* entry = tensor.defined() ? tensors_.find(tensor) : nullptr;
      if (entry == nullptr || !(entry->is_parameter || use.writes(i) || keeps_statistics(op))) continue;
      const int own = reads_.stage_of_next(*entry, builder_.stage());
      begin(*entry, own);
      stage = std::max(stage, own);
    }
  }
  return stage;
}

void PlainSurvey::note(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const auto arguments = torch::jit::last(*stack, op.schema().arguments().size());
  const auto& use = interception::use_of(op);
  bool is_staged = false;
  std::vector<ValueId> uses, written;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    for (const auto& tensor : tensors_of(arguments.slice(i, 1))) {
      if (!tensor.defined()) continue;
      const auto* entry = tensors_.find(tensor);
      is_staged |= entry != nullptr && (entry->is_parameter || use.writes(i));
      if (const auto id = values_.find(tensor)) {
        uses.push_back(*id);
        if (use.writes(i)) written.push_back(*id);
      }
    }
  }
  is_staged |= !uses.empty();
  const auto number = builder_.next_op();
  builder_.add({.op = &op.schema(), .is_staged = is_staged}, stage_of(op, arguments), uses);
  if (!is_staged) return interception::ThreadOperators::run_as_always(op, keys, stack);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const bool is_tensor = use.writes(i) && arguments[i].isTensor() && arguments[i].toTensor().defined();
    if (is_tensor && !values_.find(arguments[i].toTensor()) && tensors_.find(arguments[i].toTensor()) == nullptr)
      throw_written(op);
  }
  for (const auto& id : written) {
    if (builder_.is_split(id)) throw_split(op);
  }
  for (const auto& [view, of] : values_.run_on_shapes(op, number, stack)) builder_.note_alias(view, of);
}

Route PlainSurvey::finish() && {
  if (builder_.stage() + 1 == builder_.stages()) return std::move(builder_).finish();
  const int missing = builder_.stage() + 1;
  throw UsageError({.what = text::concat("Forward has read no parameter of stage ", missing,
                                         " of the pipeline, such as ", text::quote(tensors_.name_in(missing))),
                    .why = "a stage begins with the first operator that reads a parameter of it",
                    .hint = "register the parts in the order in which forward uses them, or use fewer stages"});
}

}  // namespace hortator::parallel

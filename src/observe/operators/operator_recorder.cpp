#include "observe/operators/operator_recorder.hpp"

#include <torch/csrc/autograd/function.h>

#include <atomic>
#include <utility>

#include "observe/operators/fingerprint.hpp"
#include "observe/operators/operator_facts.hpp"
#include "observe/operators/operator_log.hpp"

namespace hortator::observe {
namespace {

using c10::IValue;

// A global: LibTorch calls plain functions, also on the threads of backward passes.
std::atomic<OperatorLog*> current_log = nullptr;
// Operators call other operators: those within a recorded one are not recorded.
thread_local int recorded_depth = 0;
// Operators are called by the rules of operators whose arguments are divided.
thread_local int rule_depth = 0;

bool has_absent(c10::ArrayRef<const IValue> values) {
  bool is_absent = false;
  for (const auto& value : values)
    for_tensors(value, [&](const at::Tensor& tensor) { is_absent = is_absent || !has_memory(tensor); });
  return is_absent;
}

bool has_divided(c10::ArrayRef<const IValue> values) {
  bool is_divided = false;
  for (const auto& value : values)
    for_tensors(value, [&](const at::Tensor& tensor) {
      is_divided = is_divided || (tensor.layout() == at::kStrided && !tensor.has_storage());
    });
  return is_divided;
}

/// An operator that is not recorded itself, called with divided tensors.
class DividedCall final : public at::ObserverContext {
 public:
  DividedCall() { ++rule_depth; }
  ~DividedCall() override { --rule_depth; }
};

/// A call of an operator, until it returns. Where an argument has no memory yet, operators of ours bring or divide it
/// and call the operator again: then that call is recorded.
class RecordedCall final : public at::ObserverContext {
 public:
  RecordedCall(OperatorLog& log, const OperatorFacts& facts, const at::RecordFunction& call)
      : log_(log),
        own_(call.seqNr()),
        is_outer_(has_absent(call.inputs())),
        is_divided_(is_outer_ && has_divided(call.inputs())),
        size_before_(log.size()) {
    record_.name = facts.name;
    for (const auto& value : call.inputs()) for_tensors(value, [&](const at::Tensor& tensor) { note_input(tensor); });
    for (const auto position : facts.written)
      for_tensors(call.inputs()[position], [&](const at::Tensor& tensor) { written_.push_back(tensor); });
    recorded_depth += is_outer_ ? 0 : 1;
    rule_depth += is_divided_ ? 1 : 0;
  }
  ~RecordedCall() override {
    recorded_depth -= is_outer_ ? 0 : 1;
    rule_depth -= is_divided_ ? 1 : 0;
  }

  void end(const std::vector<IValue>& results) {
    if (is_outer_ && log_.size() != size_before_) return;
    for (const auto& value : results) for_tensors(value, [&](const at::Tensor& tensor) { note_result(tensor); });
    for (const auto& tensor : written_) note_result(tensor);
    if (record_.results.empty()) return;
    record_.is_of_parts = rule_depth > (is_divided_ ? 1 : 0);
    const auto function = torch::autograd::get_current_node();
    record_.is_backward = function != nullptr;
    log_.add(std::move(record_), function ? static_cast<std::int64_t>(function->sequence_nr()) : -1, own_);
  }

 private:
  void note_input(const at::Tensor& tensor) {
    if (record_.path.empty()) record_.path = log_.path_of(tensor);
    if (has_memory(tensor)) record_.inputs.push_back(brief_fingerprint(tensor));
  }
  void note_result(const at::Tensor& tensor) {
    if (has_memory(tensor)) record_.results.push_back(fingerprint(tensor));
  }

  OperatorLog& log_;
  std::int64_t own_;
  bool is_outer_;
  bool is_divided_;
  std::size_t size_before_;
  OperatorRecord record_;
  std::vector<at::Tensor> written_;
};

std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& call) {
  auto* const log = current_log.load();
  if (log == nullptr) return nullptr;
  if (recorded_depth > 0) return nullptr;
  const at::DisableRecordFunctionGuard unseen;
  const auto* const facts = facts_of(call);
  if (facts == nullptr) return nullptr;
  if (!facts->is_recorded) return has_divided(call.inputs()) ? std::make_unique<DividedCall>() : nullptr;
  return std::make_unique<RecordedCall>(*log, *facts, call);
}

void end(const at::RecordFunction& call, at::ObserverContext* context) {
  const at::DisableRecordFunctionGuard unseen;
  if (auto* const recorded = dynamic_cast<RecordedCall*>(context); recorded != nullptr && current_log.load() != nullptr)
    recorded->end(call.outputs());
}

}  // namespace

OperatorRecorder::OperatorRecorder(const NamedTensors& parameters) : log_(std::make_unique<OperatorLog>(parameters)) {
  current_log = log_.get();
  handle_ = at::addThreadLocalCallback(
      at::RecordFunctionCallback(begin, end).needsInputs(true).needsOutputs(true).scopes({at::RecordScope::FUNCTION}));
}

OperatorRecorder::~OperatorRecorder() {
  at::removeCallback(handle_);
  current_log = nullptr;
}

void OperatorRecorder::note(const std::string& name, const NamedTensors& tensors) {
  const at::DisableRecordFunctionGuard unseen;
  for (const auto& [path, tensor] : tensors) {
    if (!has_memory(tensor)) continue;
    OperatorRecord record{.name = name, .path = path, .near = path};
    record.results.push_back(fingerprint(tensor));
    log_->add_noted(std::move(record));
  }
}

void OperatorRecorder::begin_part(int number) { log_->begin_part(number); }
void OperatorRecorder::begin_update() { log_->begin_update(); }
std::vector<OperatorRecord> OperatorRecorder::take() { return log_->take(); }

}  // namespace hortator::observe

#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "observe/operators/operator_facts.hpp"

namespace hortator::test {

/// While it lives, the operator of this number among those that are recorded computes something else: the last bit of
/// the first element of its result is flipped. Make it before the recorder, which then sees the other bit.
class PlantedFault {
 public:
  explicit PlantedFault(std::optional<std::int64_t> number) {
    wanted = number.value_or(-1);
    is_counting = false;
    is_planted = false;
    handle_ = at::addGlobalCallback(at::RecordFunctionCallback(begin, end)
                                        .needsInputs(true)
                                        .needsOutputs(true)
                                        .scopes({at::RecordScope::FUNCTION}));
  }
  ~PlantedFault() { at::removeCallback(handle_); }
  PlantedFault(const PlantedFault&) = delete;
  PlantedFault& operator=(const PlantedFault&) = delete;

  /// Counting begins.
  static void begin_counting() {
    next = 0;
    is_counting = true;
  }
  static bool was_planted() { return is_planted; }

 private:
  struct Call final : at::ObserverContext {
    Call() { ++depth; }
    ~Call() override { --depth; }
  };

  static std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& call) {
    if (depth > 0 || !is_counting) return nullptr;
    const auto* const facts = observe::facts_of(call);
    if (facts == nullptr || !facts->is_recorded || !has_memory(call.inputs())) return nullptr;
    return std::make_unique<Call>();
  }

  static bool has_memory(c10::ArrayRef<const c10::IValue> values) {
    bool all = true;
    for (const auto& value : values)
      observe::for_tensors(value, [&](const at::Tensor& tensor) { all = all && tensor.has_storage(); });
    return all;
  }

  static void end(const at::RecordFunction& call, at::ObserverContext* context) {
    if (dynamic_cast<Call*>(context) == nullptr) return;
    bool has_result = false;
    for (const auto& value : call.outputs())
      observe::for_tensors(value, [&](const at::Tensor& tensor) {
        if (!has_result && next == wanted && tensor.scalar_type() == at::kFloat && tensor.numel() > 0) flip(tensor);
        has_result = true;
      });
    if (has_result) ++next;
  }

  static void flip(const at::Tensor& tensor) {
    *static_cast<std::uint32_t*>(tensor.mutable_data_ptr()) ^= 1U;
    is_planted = true;
  }

  static inline std::int64_t wanted = -1;
  static inline std::int64_t next = 0;
  static inline bool is_counting = false;
  static inline bool is_planted = false;
  static inline thread_local int depth = 0;
  at::CallbackHandle handle_;
};

}  // namespace hortator::test

#include "comm/collective_range.hpp"

#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/ParamCommsUtils.hpp>
#include <tuple>

#include "core/text/text.hpp"
#include "core/text/units.hpp"

namespace hortator::comm {
namespace {

// Since a later release than the oldest one that is accepted. `sequence` is in the group's description as well.
template <typename Facts>
void set_sequence(Facts& facts, std::int64_t sequence) {
  if constexpr (requires { facts.setSequenceInfo(sequence, false); }) facts.setSequenceInfo(sequence, false);
}

// What PyTorch's readers of traces expect. Elements are bytes. The ranks of the group are not known here.
std::shared_ptr<torch::ParamCommsDebugInfo> facts_of(const activity::Operation& operation, std::string_view backend,
                                                     CollectiveRange::CollectivePhase part) {
  const auto bytes = static_cast<std::int64_t>(operation.bytes);
  auto name = part == CollectiveRange::CollectivePhase::wait ? std::string("wait") : operation.name.text();
  auto facts = std::make_shared<torch::ParamCommsDebugInfo>(
      std::tuple(text::print("%llx", static_cast<unsigned long long>(operation.communicator)),
                 text::concat("hortator ", backend, " #", operation.sequence)),
      /*rank=*/0, std::move(name), bytes, bytes, at::kByte, std::vector<std::int64_t>(), std::vector<std::int64_t>(),
      /*globalRankStart=*/-1, /*globalRankStride=*/-1, operation.size);
  set_sequence(*facts, static_cast<std::int64_t>(operation.sequence));
  return facts;
}

}  // namespace

void CollectiveRange::begin(at::StepCallbacks&& callbacks, const activity::Operation& operation,
                            std::string_view backend, CollectivePhase part) {
  const auto label = text::concat("hortator::", operation.name.text(), part == CollectivePhase::wait ? " wait" : "",
                                  " (", backend, ", ", units::bytes(operation.bytes), ")");
  range_.emplace(std::move(callbacks)).before(std::string_view(label));
  facts_.emplace(c10::DebugInfoKind::PARAM_COMMS_INFO, facts_of(operation, backend, part));
  auto inner = at::getStepCallbacksUnlessEmpty(at::RecordScope::USER_SCOPE);
  if (inner) inner_.emplace(*std::move(inner)).before(at::kParamCommsCallName);
}

}  // namespace hortator::comm

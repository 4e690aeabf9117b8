#include "accelerator/rehearsal/memory_at_peak.hpp"

#include <algorithm>
#include <deque>
#include <map>

#include "accelerator/prepared/prepared.hpp"
#include "accelerator/training/training.hpp"
#include "interception/storage_memory.hpp"
#include "machine/shapes/counted_memory.hpp"
#include "step/moments/optimizer_fields.hpp"

namespace hortator::accelerator {
namespace {

/// The allocations of the peak, by address. Each gets one owner: the first that claims it.
class Claims {
 public:
  explicit Claims(const std::vector<machine::Allocation>& allocations) {
    for (const auto& one : allocations) {
      if (one.is_live) by_address_.emplace(static_cast<const std::byte*>(one.data), one.bytes);
    }
  }

  void claim(std::uint64_t& owner, const at::Tensor& tensor) {
    if (!tensor.defined() || !tensor.has_storage() || !tensor.is_cpu()) return;
    const auto* const begin = interception::memory_of(tensor.storage());
    const auto after = by_address_.upper_bound(begin);
    if (begin == nullptr || after == by_address_.begin()) return;
    const auto found = std::prev(after);
    if (begin >= found->first + found->second) return;
    owner += found->second;
    by_address_.erase(found);
  }

  bool is_unclaimed(const void* data) const { return by_address_.contains(static_cast<const std::byte*>(data)); }

 private:
  std::map<const std::byte*, std::size_t> by_address_;
};

/// Claims the tensors in an optimizer's state of one parameter.
class ClaimedMoments final : public step::FieldVisitor {
 public:
  ClaimedMoments(Claims& claims, std::uint64_t& bytes) : claims_(claims), bytes_(bytes) {}
  void field(std::string_view /*name*/, double& /*value*/) override {}
  void field(std::string_view /*name*/, std::int64_t& /*value*/) override {}
  void field(std::string_view /*name*/, bool& /*value*/) override {}
  void field(std::string_view /*name*/, at::Tensor& value) override { claims_.claim(bytes_, value); }
  void field(std::string_view /*name*/, std::deque<at::Tensor>& values) override {
    for (const auto& value : values) claims_.claim(bytes_, value);
  }

 private:
  Claims& claims_;
  std::uint64_t& bytes_;
};

void claim_known(Claims& claims, PeakByOwner& peak, const Training& training) {
  for (const auto& model : training.prepared.models()) {
    for (const auto& [name, parameter] : model->parameters()) claims.claim(peak.parameters, parameter);
    for (const auto& buffer : model->module().buffers()) claims.claim(peak.buffers, buffer);
    for (const auto& holder : model->gradient_holders()) claims.claim(peak.gradients, holder.grad());
  }
  for (const auto& optimizer : training.prepared.optimizers()) {
    for (const auto& group : optimizer->optimizer().param_groups()) {
      for (const auto& parameter : group.params()) {
        claims.claim(peak.parameters, parameter);  // slices of ZeRO's
        claims.claim(peak.gradients, parameter.grad());
      }
    }
    for (const auto& [parameter, state] : optimizer->optimizer().state()) {
      ClaimedMoments moments(claims, peak.optimizers);
      step::visit_fields(*state, moments);
    }
  }
}

bool is_for_communication(const machine::Allocation& one) { return one.made_by == "shared window"; }

}  // namespace

PeakByOwner peak_by_owner(const Training& training) {
  const auto found = machine::memory_peak();
  PeakByOwner peak{.total = found.bytes};
  Claims claims(found.allocations);
  claim_known(claims, peak, training);
  std::map<std::string, PeakByOwner::ByOperator> by_operator;
  for (const auto& one : found.allocations) {
    if (one.is_live && !claims.is_unclaimed(one.data)) continue;
    if (is_for_communication(one)) {
      peak.buffers += one.bytes;
      continue;
    }
    peak.activations += one.bytes;
    auto& of_operator = by_operator[one.made_by.empty() ? "others" : std::string(one.made_by)];
    of_operator.bytes += one.bytes;
    of_operator.largest = std::max<std::uint64_t>(of_operator.largest, one.bytes);
  }
  for (auto& [name, entry] : by_operator) {
    entry.name = name;
    peak.activations_by_operator.push_back(std::move(entry));
  }
  std::ranges::sort(peak.activations_by_operator, std::greater(), &PeakByOwner::ByOperator::bytes);
  return peak;
}

}  // namespace hortator::accelerator

#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <string>
#include <vector>

#include "paging/stores/store.hpp"

namespace hortator::paging {

/// Whether weights can be kept in the type: a floating-point type with a sign and an element for each number.
bool holds_weights(at::ScalarType type);

/// Whether all numbers are within the range of the type. Infinities are, if the type has them.
bool fits(const at::Tensor& values, at::ScalarType type);
/// Throws UsageError, naming the parameter, if it does not fit.
void require_fits(const std::string& name, const at::Tensor& values, at::ScalarType type);

/// Pages on their own device in a smaller type, from which and to which they are converted.
class CastStore final : public Store {
 public:
  CastStore(const PagedStorages& storages, at::ScalarType type);

  comm::Work fetch(const Page& page, std::span<std::byte> frame) override;
  /// Throws as require_fits().
  comm::Work publish(const Page& page, std::span<const std::byte> frame) override;
  bool follows_storages() const override { return false; }

 private:
  struct KeptParameter {
    std::string name = {};
    at::ScalarType type = at::kFloat;  ///< as it is used
    at::Tensor values = {};            ///< as it is kept
  };
  at::Tensor in_frame(const PagePosition& position, std::byte* frame) const;
  const KeptParameter& kept_at(const PagePosition& position) const {
    return kept_[static_cast<std::size_t>(position.storage)];
  }

  std::vector<KeptParameter> kept_;
};

}  // namespace hortator::paging

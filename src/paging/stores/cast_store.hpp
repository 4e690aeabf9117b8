#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "paging/stores/store.hpp"

namespace hortator::paging {

/// Whether weights can be kept in the type: a floating-point type with a sign and an element for each number.
bool holds_weights(at::ScalarType type);

/// Whether all numbers are within the range of the type. Infinities are, if the type has them.
bool fits(const at::Tensor& values, at::ScalarType type);
/// Throws UsageError with the tensor's name and the hint if converting it to `type` would lose a number that is too
/// large.
void require_fits(const std::string& name, const at::Tensor& values, at::ScalarType type, std::string_view hint);

/// The hint for weights that are kept in a smaller type while they are not used.
inline constexpr std::string_view hint_for_kept =
    "keep it as it is (keep_resident), or choose a type with a larger range";

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

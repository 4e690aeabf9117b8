#pragma once

#include <hortator/detail/batch_source.hpp>
#include <hortator/detail/change_tensors.hpp>
#include <hortator/detail/codec.hpp>
#include <memory>
#include <string>
#include <string_view>

namespace hortator::detail {

/// The part of a source that depends only on the type of its batches.
template <typename Batch_, typename Base>
class TypedSource : public Base {
 public:
  using Batch = Batch_;

  void change(void* batch, const data::ChangeTensor& change) const final {
    change_tensors(*static_cast<Batch*>(batch), change);
  }

  bool can_travel() const final { return Serializable<Batch>; }
  std::string encode(const void* batch) const final {
    if constexpr (Serializable<Batch>) {
      return detail::encode(*static_cast<const Batch*>(batch));
    } else {
      data::throw_cannot_travel();
    }
  }
  std::shared_ptr<void> decode(std::string_view bytes) const final {
    if constexpr (Serializable<Batch>) {
      auto batch = std::make_shared<Batch>();
      detail::decode(bytes, *batch);
      return batch;
    } else {
      data::throw_cannot_travel();
    }
  }
};

}  // namespace hortator::detail

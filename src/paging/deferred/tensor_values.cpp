#include "paging/deferred/tensor_values.hpp"

#include <utility>

#include "paging/interception/claims.hpp"
#include "paging/interception/storage_state.hpp"

namespace hortator::paging {
namespace {

bool has_elements(const at::Tensor& tensor) {
  return tensor.defined() && tensor.has_storage() && tensor.storage().nbytes() > 0;
}

void take_from_provider(const at::Tensor& tensor, Content content) {
  if (const auto former = claim_of(tensor)) former.provider->hand_over(former.number, content);
}

}  // namespace

bool lacks_memory(const at::Tensor& tensor) {
  return has_elements(tensor) && tensor.device().is_cpu() && memory_of(tensor.storage()) == nullptr;
}

bool is_deferred(const at::Tensor& tensor) { return static_cast<bool>(claim_of(tensor)); }

void settle(const at::Tensor& tensor) {
  if (has_elements(tensor)) take_from_provider(tensor, Content::keep);
}

void drop_values(const at::Tensor& tensor, std::string why) {
  if (!has_elements(tensor) || !tensor.device().is_cpu()) return;
  take_from_provider(tensor, Content::drop);
  take_memory(tensor.storage(), std::move(why));
}

void give_memory(const at::Tensor& tensor) {
  if (!has_elements(tensor)) return;
  take_from_provider(tensor, Content::drop);
  if (lacks_memory(tensor)) own_memory(tensor.storage(), new_memory(tensor.storage().nbytes()));
}

}  // namespace hortator::paging

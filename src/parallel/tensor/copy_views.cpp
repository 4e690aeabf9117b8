#include "parallel/tensor/copy_views.hpp"

#include <ATen/core/ivalue.h>
#include <ATen/ops/alias.h>
#include <c10/core/TensorImpl.h>

#include <algorithm>
#include <hortator/error.hpp>
#include <utility>

#include "core/text/text.hpp"
#include "interception/dispatch_keys.hpp"
#include "parallel/tensor/tensor_state.hpp"

namespace hortator::parallel {
namespace {

/// The part of the divided tensor, as it was when the copy was gathered.
struct CopyOrigin final : c10::BackendMeta {
  explicit CopyOrigin(at::Tensor of) : part(std::move(of)), version(tensor_version(part)) {}
  at::Tensor part;
  std::uint32_t version;
};

CopyOrigin* origin_of(const at::Tensor& tensor) {
  return dynamic_cast<CopyOrigin*>(tensor.unsafeGetTensorImpl()->get_backend_meta());
}

void require_current(const CopyOrigin& origin) {
  if (tensor_version(origin.part) == origin.version) return;
  throw UsageError({.what = "A view of a tensor that is divided among ranks is used after the tensor was changed",
                    .why = "the view is of a gathered copy, which has the values from before",
                    .hint = "take the view again after the change"});
}

at::Tensor without_key(const at::Tensor& view) {
  const PartsOnly here;
  auto plain = at::alias(view);
  interception::remove_divided_key(plain);
  return plain;
}

bool is_written(const c10::Argument& argument) {
  const auto* alias = argument.alias_info();
  return alias != nullptr && alias->isWrite();
}

bool has_copy_view(const c10::IValue& value) {
  if (value.isTensor()) return is_copy_view(value.toTensor());
  return value.isTensorList() && std::ranges::any_of(value.toTensorVector(), is_copy_view);
}

void refuse_write(const OperatorCall& call) {
  throw UsageError({.what = text::concat(toString(call.op().operator_name()),
                                         " was called on a view of a tensor that is divided among ranks"),
                    .why = "the view is of a gathered copy, so the tensor itself would not change",
                    .hint = "write into the tensor before, by masked_fill or where, or use the operator that returns "
                            "a new tensor"});
}

}  // namespace

bool is_copy_view(const at::Tensor& tensor) {
  return tensor.defined() && interception::carries_divided_key(tensor) && origin_of(tensor) != nullptr;
}

void mark_copy_view(const at::Tensor& view, const at::Tensor& part) {
  interception::add_divided_key(view);
  view.unsafeGetTensorImpl()->set_backend_meta(c10::make_intrusive<CopyOrigin>(part));
}

void Copies::take_arguments(OperatorCall& call) {
  for (std::size_t i = 0; i < call.count(); ++i) {
    if (!has_copy_view(call.argument(i))) continue;
    if (is_written(call.schema().arguments()[i])) refuse_write(call);
    call.set(i, taken(call.argument(i)));
  }
}

c10::IValue Copies::taken(const c10::IValue& value) {
  if (value.isTensor()) {
    const auto& tensor = value.toTensor();
    if (!is_copy_view(tensor)) return value;
    const auto& origin = *origin_of(tensor);
    require_current(origin);
    auto plain = without_key(tensor);
    add(plain, origin.part);
    return plain;
  }
  auto list = value.toList().copy();
  for (std::size_t i = 0; i < list.size(); ++i) list.set(i, taken(list.get(i)));
  return list;
}

void Copies::mark_results(OperatorCall& call) const {
  if (copies_.empty()) return;
  for (std::size_t i = 0; i < call.results(); ++i) mark(call.result(i));
}

void Copies::mark(const c10::IValue& value) const {
  if (value.isTensorList()) {
    for (const auto& one : value.toTensorVector()) mark(one);
    return;
  }
  if (!value.isTensor() || !value.toTensor().defined() || interception::carries_divided_key(value.toTensor())) return;
  const auto& tensor = value.toTensor();
  const auto found = std::ranges::find_if(
      copies_, [&](const CopyOfPart& one) { return tensor.has_storage() && tensor.is_alias_of(one.copy); });
  if (found != copies_.end()) mark_copy_view(tensor, found->part);
}

}  // namespace hortator::parallel

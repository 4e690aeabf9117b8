#include "exported/file/payload.hpp"

#include <ATen/ops/empty.h>
#include <c10/core/Layout.h>

#include <utility>

#include "core/text/text.hpp"
#include "exported/file/fault.hpp"
#include "exported/file/field.hpp"
#include "exported/file/types.hpp"

namespace hortator::exported {
namespace {

constexpr std::size_t max_dimensions = 64;  // the limit of PyTorch's operators

std::vector<std::int64_t> sizes_in(const Field& field) {
  std::vector<std::int64_t> sizes;
  for (const auto& size : field.items()) {
    const auto [kind, value] = size.choice();
    if (kind != "as_int") value.refuse_feature("a tensor whose size is not a number");
    sizes.push_back(value.integer());
    if (sizes.back() < 0) value.refuse("the number is negative");
  }
  if (sizes.size() > max_dimensions) field.refuse(text::concat("there are ", sizes.size(), " dimensions"));
  return sizes;
}

/// The number of elements from the first of the storage to the last of the tensor; 0 for an empty tensor, below 0 for
/// one that no storage can hold.
std::int64_t reach_of(const Payload& payload) {
  std::int64_t last = payload.offset, elements = 1;
  bool fits = payload.offset >= 0;
  bool is_empty = false;
  for (std::size_t i = 0; i < payload.sizes.size(); ++i) {
    std::int64_t steps = 0;
    is_empty = is_empty || payload.sizes[i] == 0;
    fits = fits && !__builtin_mul_overflow(payload.sizes[i] - 1, payload.strides[i], &steps) &&
           !__builtin_add_overflow(last, steps, &last) &&
           !__builtin_mul_overflow(elements, payload.sizes[i], &elements);
  }
  if (is_empty && payload.offset >= 0) return 0;
  return fits && !__builtin_add_overflow(last, 1, &last) ? last : -1;
}

Payload read_payload(const Field& field, const std::string& folder, const Archive& archive) {
  if (field.at("use_pickle").flag()) field.refuse_feature("a tensor of a class of its own, or an object,");
  const auto meta = field.at("tensor_meta");
  Payload payload{.record = folder + field.at("path_name").text(),
                  .is_parameter = field.at("is_param").flag(),
                  .requires_grad = meta.at("requires_grad").flag(),
                  .type = scalar_type_in(meta.at("dtype")),
                  .sizes = sizes_in(meta.at("sizes")),
                  .strides = sizes_in(meta.at("strides"))};
  if (layout_in(meta.at("layout")) != c10::kStrided) meta.refuse_feature("a sparse tensor");
  const auto [kind, offset] = meta.at("storage_offset").choice();
  payload.offset = offset.integer();
  if (payload.sizes.size() != payload.strides.size()) meta.refuse("there are not as many strides as sizes");
  const auto reach = reach_of(payload);
  const auto elements = archive.size(payload.record) / c10::elementSize(payload.type);
  if (reach < 0 || static_cast<std::uint64_t>(reach) > elements)
    meta.refuse(text::concat("the tensor does not lie within its record ", text::quote(payload.record)));
  return payload;
}

}  // namespace

Payloads parse_payloads(std::string_view json, const std::string& folder, const Archive& archive) {
  try {
    const auto value = formats::parse_strict_json(json);
    Payloads payloads;
    for (const auto& [name, field] : Field(value).at("config").members())
      payloads.emplace(name, read_payload(field, folder, archive));
    return payloads;
  } catch (const formats::JsonFault& fault) {
    throw ExportFault(
        text::concat("its list of tensors in ", text::quote(folder), " is not valid JSON: ", fault.what()));
  }
}

at::Tensor PayloadReader::read(const Payload& payload) {
  auto& bytes = records_[payload.record];
  if (!bytes.defined()) {
    const auto size = archive_->size(payload.record);
    bytes = at::empty({static_cast<std::int64_t>(size)}, at::kByte);
    archive_->read(payload.record, 0, bytes.data_ptr(), size);
  }
  auto tensor = at::empty({0}, payload.type);
  return tensor.set_(bytes.storage(), payload.offset, payload.sizes, payload.strides);
}

}  // namespace hortator::exported

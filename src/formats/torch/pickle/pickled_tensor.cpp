#include "formats/torch/pickle/pickled_tensor.hpp"

#include <limits>

#include "core/text/text.hpp"
#include "formats/tensor/stored_rows.hpp"
#include "formats/torch/pickle/machine.hpp"
#include "formats/torch/pickle/types.hpp"

namespace hortator::formats {
namespace pickle {
namespace {

constexpr std::size_t max_dimensions = 64;  // the limit of PyTorch's operators

template <typename Content>
const Content& argument(const Tuple& arguments, std::size_t index, std::string_view what) {
  if (index < arguments.items.size()) {
    if (const auto* content = std::get_if<Content>(&arguments.items[index]->content)) return *content;
  }
  throw PickleFault(text::concat("a tensor has invalid arguments: its ", what, " is missing or of another type"));
}

std::vector<std::int64_t> sizes_in(const Tuple& arguments, std::size_t index, std::string_view what) {
  const auto& items = argument<Tuple>(arguments, index, what).items;
  if (items.size() > max_dimensions) throw PickleFault(text::concat("a tensor has ", items.size(), " dimensions"));
  std::vector<std::int64_t> sizes;
  for (std::size_t i = 0; i < items.size(); ++i)
    sizes.push_back(argument<std::int64_t>(argument<Tuple>(arguments, index, what), i, what));
  return sizes;
}

/// Throws for lazily conjugated or negated tensors, which the pickle marks by a flag.
void require_plain(const Tuple& arguments, std::size_t index) {
  if (index >= arguments.items.size()) return;
  if (std::holds_alternative<std::nullptr_t>(arguments.items[index]->content)) return;
  if (argument<Dict>(arguments, index, "metadata").items.empty()) return;
  throw PickleFault("a tensor is a view by conjugation or negation: call resolve_conj() and resolve_neg() in Python");
}

void require_within(const PickledTensor& tensor, std::int64_t storage_elements) {
  const auto fail = [&](std::string_view why) {
    throw PickleFault(text::concat("a tensor [", text::join(tensor.spec.shape), "] with strides [",
                                   text::join(tensor.strides), "] from element ", tensor.first, " of storage ",
                                   text::quote(tensor.storage), " ", why));
  };
  if (tensor.strides.size() != tensor.spec.shape.size()) fail("has a wrong number of strides");
  if (!byte_count(tensor.spec)) fail("is too large, or has a negative size");
  std::int64_t last = 0;  // element of those from the first on
  bool is_empty = false;
  bool fits = tensor.first >= 0;
  for (std::size_t i = 0; i < tensor.strides.size(); ++i) {
    std::int64_t reach = 0;
    is_empty = is_empty || tensor.spec.shape[i] == 0;
    fits = fits && tensor.strides[i] >= 0 &&
           !__builtin_mul_overflow(tensor.spec.shape[i] - 1, tensor.strides[i], &reach) &&
           !__builtin_add_overflow(last, reach, &last);
  }
  if (is_empty && tensor.first >= 0) return;
  if (!fits || tensor.first >= storage_elements || last >= storage_elements - tensor.first)
    fail(text::concat("does not lie within its ", storage_elements, " elements"));
}

// Both functions begin with (storage, first element, shape, strides, requires_grad, hooks).
PickledTensor rebuild(const Tuple& arguments, at::ScalarType type, std::int64_t storage_elements) {
  PickledTensor tensor{.spec = {.type = type, .shape = sizes_in(arguments, 2, "shape")},
                       .strides = sizes_in(arguments, 3, "strides"),
                       .first = argument<std::int64_t>(arguments, 1, "first element"),
                       .storage = argument<Storage>(arguments, 0, "storage").name};
  require_within(tensor, storage_elements);
  return tensor;
}

}  // namespace

PickledTensor rebuild_tensor(const Tuple& arguments) {
  const auto& storage = argument<Storage>(arguments, 0, "storage");
  if (!storage.type) throw PickleFault("a tensor has no element type");
  require_plain(arguments, 6);
  return rebuild(arguments, *storage.type, storage.size);
}

PickledTensor rebuild_tensor_of_type(const Tuple& arguments) {
  const auto& storage = argument<Storage>(arguments, 0, "storage");
  const auto& name = argument<Class>(arguments, 6, "type").name;
  const auto type = torch_type_named(name);
  if (!type) throw PickleFault(text::concat("a tensor has elements of ", name, ", which this reader does not know"));
  require_plain(arguments, 7);
  const auto bytes =
      storage.type ? storage.size * static_cast<std::int64_t>(c10::elementSize(*storage.type)) : storage.size;
  return rebuild(arguments, *type, bytes / static_cast<std::int64_t>(c10::elementSize(*type)));
}

PickledTensor rebuild_parameter(const Tuple& arguments) {
  auto tensor = argument<PickledTensor>(arguments, 0, "data");
  tensor.is_parameter = true;
  return tensor;
}

Storage storage_of(const Tuple& identifier) {
  if (argument<std::string>(identifier, 0, "storage") != "storage")
    throw PickleFault("a persistent object is not a storage");
  const auto& name = argument<Class>(identifier, 1, "class of storage").name;
  Storage storage{.type = type_of_storage(name),
                  .name = argument<std::string>(identifier, 2, "name of storage"),
                  .size = argument<std::int64_t>(identifier, 4, "size of storage")};
  if (!storage.type && name != untyped_storage)
    throw PickleFault(text::concat("a tensor is stored in a ", name, ", which this reader does not know"));
  constexpr std::size_t max_name_bytes = 255;  // PyTorch numbers storages; every tensor repeats the name
  if (storage.name.size() > max_name_bytes)
    throw PickleFault(text::concat("a storage has a name of ", storage.name.size(), " bytes"));
  const TensorSpec all{.type = storage.type.value_or(at::kByte), .shape = {storage.size}};
  if (!byte_count(all)) throw PickleFault(text::concat("a storage has ", storage.size, " elements"));
  return storage;
}

}  // namespace pickle

bool PickledTensor::is_row_major() const {
  std::int64_t stride = 1;
  for (std::size_t i = spec.shape.size(); i-- > 0; stride *= spec.shape[i]) {
    if (spec.shape[i] != 1 && strides[i] != stride) return false;
  }
  return true;
}

std::int64_t PickledTensor::reach() const {
  if (byte_count(spec) == 0) return 0;
  std::int64_t last = 0;
  for (std::size_t i = 0; i < strides.size(); ++i) last += (spec.shape[i] - 1) * strides[i];
  return last + 1;
}

}  // namespace hortator::formats

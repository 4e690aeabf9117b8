#include <ATen/ops/empty.h>

#include <hortator/detail/codec.hpp>
#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator {

void ObjectWriter::write_text(std::string_view text) {
  write_size(text.size());
  write_bytes(text.data(), text.size());
}

void ObjectWriter::write_tensor(const at::Tensor& tensor) {
  write_plain(tensor.defined());
  if (!tensor.defined()) return;
  if (tensor.layout() != at::kStrided) {
    throw UsageError({.what = text::concat("An object holds a tensor of layout ", tensor.layout()),
                      .why = "only dense tensors can be sent in objects",
                      .hint = "convert it with to_dense() first"});
  }
  const auto data = tensor.detach().to(at::kCPU).resolve_conj().resolve_neg().contiguous();
  write_plain(data.scalar_type());
  write_size(data.sizes().size());
  for (const auto size : data.sizes()) write_plain(size);
  write_bytes(data.const_data_ptr(), data.nbytes());
}

void ObjectWriter::write_state(const StateDict& state) { detail::write_object(*this, state.values()); }

void ObjectReader::read_bytes(void* data, std::size_t count) {
  if (count > remaining_.size()) {
    throw Error({.what = text::concat("An object's bytes end early: ", count, " more are needed, ", remaining_.size(),
                                      " are left"),
                 .why = "it was written as a type other than the one that is read"});
  }
  if (count > 0) std::memcpy(data, remaining_.data(), count);
  remaining_.remove_prefix(count);
}

std::size_t ObjectReader::read_size() {
  std::uint64_t size = 0;
  read_plain(size);
  return size;
}

std::string ObjectReader::read_text() {
  const auto size = read_size();
  std::string text(std::min(size, remaining_.size() + 1), '\0');  // one byte more than there is makes read_bytes throw
  read_bytes(text.data(), text.size());
  return text;
}

at::Tensor ObjectReader::read_tensor() {
  bool defined = false;
  read_plain(defined);
  if (!defined) return {};
  auto type = at::kFloat;
  read_plain(type);
  std::vector<std::int64_t> sizes;
  for (auto left = read_size(); left > 0; --left) read_plain(sizes.emplace_back());
  auto tensor = at::empty(sizes, type);
  read_bytes(tensor.mutable_data_ptr(), tensor.nbytes());
  return tensor;
}

StateDict ObjectReader::read_state() {
  std::map<std::string, StateDict::Value> values;
  detail::read_object(*this, values);
  StateDict state;
  for (const auto& [name, value] : values) {
    std::visit([&, &name = name](const auto& held) { state.put(name, held); }, value);
  }
  return state;
}

void detail::check_read_whole(const ObjectReader& in) {
  if (in.at_end()) return;
  throw Error({.what = "An object left some of its bytes unread", .why = "its read does not match its write"});
}

}  // namespace hortator

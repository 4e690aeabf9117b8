#include "exported/module_tensors.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_strided.h>

#include <algorithm>

#include "core/text/text.hpp"
#include "exported/file/fault.hpp"
#include "formats/file/fixed_file.hpp"
#include "formats/tensor/tensor_spec.hpp"
#include "paging/deferred/construction_scope.hpp"
#include "paging/deferred/late_values.hpp"

namespace hortator::exported {
namespace {

constexpr std::int64_t max_expanded_bytes = std::int64_t{1} << 28;

[[noreturn]] void refuse_tensor(const std::string& name, const std::string& why) {
  throw ExportFault(text::concat("the tensor ", text::quote(name), " ", why),
                    "make it a tensor of its own in Python: tensor.clone()");
}

/// Names of a state dict become names of modules, which are neither empty nor registered twice.
std::vector<std::string> parts_of_name(const std::string& name) {
  auto parts = text::split(name, '.');
  if (std::ranges::find(parts, "") != parts.end())
    throw ExportFault(text::concat("the name ", text::quote(name), " has an empty part"));
  return parts;
}

/// The child with this name, registered with the name of its class if it is new.
torch::nn::Module& child(torch::nn::Module& module, const std::string& name, const std::string& type) {
  const auto children = module.named_children();
  const auto* known = children.find(name);
  if (known != nullptr) return **known;
  return *module.register_module(name, std::make_shared<torch::nn::Module>(type));
}

std::int64_t elements_of(const Payload& payload) {
  std::int64_t count = 1;
  for (const auto size : payload.sizes) count *= size;
  return count;
}

/// Whether two dense tensors of a record have no element in common.
bool are_apart(const Payload& a, const Payload& b) {
  return a.type == b.type && (a.offset + elements_of(a) <= b.offset || b.offset + elements_of(b) <= a.offset);
}

}  // namespace

std::shared_ptr<const OpenArchive> open_archive(const std::filesystem::path& path) {
  auto file = std::make_shared<const formats::FixedFile>(path);
  formats::ByteSource bytes{
      .bytes = file->bytes(),
      .read_at = [file](std::uint64_t offset, void* data, std::size_t count) { file->read_at(offset, data, count); }};
  return std::make_shared<const OpenArchive>(OpenArchive{.path = path, .archive = Archive(std::move(bytes))});
}

ModuleTensors::ModuleTensors(std::shared_ptr<const OpenArchive> file, const StoredProgram& stored)
    : file_(std::move(file)), reader_(file_->archive), classes_(stored.program.module_classes) {
  for (const auto& input : stored.program.inputs) {
    const auto found = stored.weights.find(input.name);
    const bool is_state = input.kind == InputSpec::Kind::parameter || input.kind == InputSpec::Kind::buffer;
    if (is_state && found != stored.weights.end()) add(found->first, found->second);
  }
  for (const auto& [name, payload] : stored.weights) add(name, payload);  // what the graph does not use
  reader_ = PayloadReader(file_->archive);                                // tensors alone keep the memory
}

void ModuleTensors::add(const std::string& name, const Payload& payload) {
  if (by_name_.contains(name)) return;
  const auto tensor = payload.is_parameter ? parameter(name, payload) : buffer(name, payload);
  state_.push_back({.name = name, .payload = payload, .tensor = tensor});
  by_name_.emplace(name, tensor);
}

at::Tensor ModuleTensors::parameter(const std::string& name, const Payload& payload) {
  const bool is_empty = elements_of(payload) == 0;  // all of a type lie at the same place, and are no ties
  for (const auto& other : state_) {
    if (is_empty || other.payload.record != payload.record) continue;
    if (other.payload == payload) return other.tensor;  // tied
    if (are_apart(other.payload, payload)) continue;    // as the weights of an LSTM that was on a GPU
    refuse_tensor(name, text::concat("shares memory with ", text::quote(other.name), " and is another part of it"));
  }
  if (!paging::defers_construction()) {
    auto tensor = reader_.read(payload);
    if (!tensor.is_non_overlapping_and_dense())
      refuse_tensor(name, "is a parameter with strides that overlap or have gaps");
    return tensor.storage().nbytes() == tensor.nbytes() ? tensor : tensor.clone();
  }
  auto tensor = at::empty_strided(payload.sizes, payload.strides, payload.type);
  if (!tensor.is_non_overlapping_and_dense())
    refuse_tensor(name, "is a parameter with strides that overlap or have gaps");
  paging::fill_later(tensor, [file = file_, payload](const at::Tensor& to) {
    const at::NoGradGuard no_grad;
    to.copy_(PayloadReader(file->archive).read(payload));
  });
  return tensor;
}

at::Tensor ModuleTensors::buffer(const std::string& name, const Payload& payload) {
  auto tensor = reader_.read(payload);
  if (tensor.is_non_overlapping_and_dense()) return tensor;
  const auto bytes = formats::spec_of(tensor).bytes();
  if (bytes > max_expanded_bytes) refuse_tensor(name, text::concat("is a view of ", bytes, " bytes"));
  return tensor.contiguous();
}

at::Tensor ModuleTensors::find(const StoredProgram& stored, const InputSpec& input) {
  const bool is_constant = input.kind == InputSpec::Kind::constant;
  if (!is_constant) {
    if (const auto known = by_name_.find(input.name); known != by_name_.end()) return known->second;
    if (const auto known = other_buffers_.find(input.name); known != other_buffers_.end()) return known->second;
  }
  const auto found = stored.constants.find(input.name);
  if (found == stored.constants.end())
    throw ExportFault(text::concat("the tensor ", text::quote(input.name), " is missing"));
  auto tensor = PayloadReader(file_->archive).read(found->second);
  if (!is_constant) other_buffers_.emplace(input.name, tensor);
  return tensor;
}

at::Tensor ModuleTensors::of_state(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? at::Tensor() : found->second;
}

at::Tensor ModuleTensors::other_buffer(const std::string& name) const {
  const auto found = other_buffers_.find(name);
  return found == other_buffers_.end() ? at::Tensor() : found->second;
}

std::map<std::string, std::string> ModuleTensors::other_names() const {
  std::map<const void*, std::string> first;
  std::map<std::string, std::string> others;
  for (const auto& entry : state_) {
    if (!entry.payload.is_parameter) continue;
    const auto [known, is_new] = first.emplace(entry.tensor.unsafeGetTensorImpl(), entry.name);
    if (!is_new) others.emplace(entry.name, known->second);
  }
  return others;
}

void ModuleTensors::register_in(torch::nn::Module& module) const {
  const auto others = other_names();
  for (const auto& entry : state_) {
    if (others.contains(entry.name)) continue;
    auto* owner = &module;
    auto parts = parts_of_name(entry.name);
    const auto leaf = parts.back();
    parts.pop_back();
    std::string path;
    for (const auto& part : parts) {
      path += (path.empty() ? "" : ".") + part;
      const auto type = classes_.find(path);
      owner = &child(*owner, part, type == classes_.end() ? part : type->second);
    }
    if (entry.payload.is_parameter) {
      const bool can_learn = c10::isFloatingType(entry.payload.type) || c10::isComplexType(entry.payload.type);
      owner->register_parameter(leaf, entry.tensor, entry.payload.requires_grad && can_learn);
    } else {
      owner->register_buffer(leaf, entry.tensor);
    }
  }
}

}  // namespace hortator::exported

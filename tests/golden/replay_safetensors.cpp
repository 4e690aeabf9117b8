// Valid and malformed safetensors files: their contents, or the messages of their errors.
#include <ATen/ATen.h>

#include <algorithm>
#include <filesystem>
#include <hortator/bigmodel/safetensors_file.hpp>

#include "core/text/text.hpp"
#include "formats/file/file_error.hpp"
#include "formats/safetensors/source.hpp"
#include "replay.hpp"
#include "tensors.hpp"

namespace hortator::golden {
namespace {

namespace fs = std::filesystem;

bool is_safetensors(const json& file) {
  const auto& one = file.at("cases").front();
  return one.contains("file") && one.at("file").get<std::string>().ends_with(".safetensors");
}

// The file next to the file of cases, or else the one of this folder.
fs::path path_of(const json& one, const json& file) {
  const auto name = fs::path("safetensors") / one.at("file").get<std::string>();
  const auto beside = fs::path(file.value("folder", "")) / name;
  return fs::exists(beside) ? beside : GOLDEN_DIR / name;
}

std::string hex(const at::Tensor& tensor) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  const auto* bytes = static_cast<const std::uint8_t*>(tensor.const_data_ptr());
  for (std::size_t i = 0; i < tensor.nbytes(); ++i) text += {digits[bytes[i] >> 4], digits[bytes[i] & 15]};
  return text;
}

json values_of(const at::Tensor& tensor) {
  auto values = json::array();
  const auto flat = tensor.flatten();
  for (std::int64_t i = 0; i < flat.numel(); ++i) {
    const auto value = flat[i];
    if (tensor.scalar_type() == at::kUInt64) {
      values.push_back(*static_cast<const std::uint64_t*>(value.const_data_ptr()));
    } else {
      values.push_back(to_lists(value.is_floating_point() ? value.to(at::kDouble) : value));
    }
  }
  return values;
}

std::string difference_of(const SafetensorsFile& file, const std::string& name, const json& expected) {
  const auto info = file.info(name);
  const auto tensor = file.get(name);
  const auto& dtype = expected.at("dtype").get<std::string>();
  const auto python_name = text::concat("torch.", name_of(tensor.scalar_type()));
  if (dtype != info.dtype && dtype != python_name) return "the type is " + info.dtype;
  const bool as_tensor = dtype == python_name;  // with F4 the tensor has half as many elements as the file
  const auto shape = as_tensor ? tensor.sizes().vec() : info.shape;
  if (json(shape) != expected.at("shape")) return text::concat("the shape is ", text::join(shape));
  if (info.dtype != "F4" && tensor.sizes().vec() != info.shape) return "the tensor has another shape";
  if (expected.contains("bytes_hex") && expected.at("bytes_hex") != hex(tensor)) return "the bytes are " + hex(tensor);
  if (!at::equal(file.view(name).contiguous().view(-1).view(at::kByte), tensor.view(-1).view(at::kByte)))
    return "the view has other bytes";
  if (!expected.contains("values")) return "";
  return difference(values_of(tensor), expected.at("values"), 0);
}

Outcome judge_contents(const json& one, const fs::path& path) {
  const SafetensorsFile file(path);
  auto names = file.names();
  if (one.contains("file_order")) {
    const auto same = compare("the order of tensors", names, one.at("file_order"));
    if (!same.difference.empty()) return same;
  }
  if (one.contains("keys")) {
    std::ranges::sort(names);
    const auto same = compare("the names", names, one.at("keys"));
    if (!same.difference.empty()) return same;
  }
  const auto& metadata = one.at("metadata");
  const auto same = compare("the metadata", file.metadata(), metadata.is_null() ? json::object() : metadata);
  if (!same.difference.empty()) return same;
  const formats::SafetensorsSource source(path);
  for (const auto& [name, expected] : one.at("tensors").items()) {
    const auto found = difference_of(file, name, expected);
    if (!found.empty()) return differs(text::concat("tensor ", name, ": ", found));
    const auto& entry = source.entry(name);
    if (expected.contains("data_offsets") && expected.at("data_offsets") != json{entry.begin, entry.end})
      return differs(text::concat("tensor ", name, " lies at ", entry.begin, " to ", entry.end));
  }
  return equal();
}

// Hortator's message must contain that of the safetensors library, and the name of the file.
Outcome judge_refused_file(const json& one, const fs::path& path) {
  auto expected = one.at("error").get<std::string>();
  constexpr std::string_view lead = "SafetensorError: Error while deserializing header: ";
  if (expected.starts_with(lead)) expected = expected.substr(lead.size());
  try {
    const SafetensorsFile file(path);
  } catch (const formats::FileError& error) {
    const std::string_view message = error.what();
    if (message.find(expected) == std::string_view::npos)
      return differs(text::concat("rejected with: ", message, "; safetensors has: ", expected));
    const bool names_file = message.find(path.filename().string()) != std::string_view::npos;
    return names_file ? equal() : differs(text::concat("the file name is missing: ", message));
  }
  return differs(text::concat("opened; safetensors fails with: ", expected));
}

Outcome judge_safetensors(const json& one, const json& file) {
  const auto path = path_of(one, file);
  if (fs::file_size(path) != one.at("size").get<std::uint64_t>())
    return differs(text::concat(path, " is another file: it has ", fs::file_size(path), " bytes"));
  return one.value("opens", 1) != 0 ? judge_contents(one, path) : judge_refused_file(one, path);
}

}  // namespace

Format safetensors() {
  return {.name = "safetensors",
          .recognises = is_safetensors,
          .world = [](const json&) { return 0; },
          .judge = judge_safetensors};
}

}  // namespace hortator::golden

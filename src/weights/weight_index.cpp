#include "weights/weight_index.hpp"

#include <algorithm>

#include "core/text/text.hpp"
#include "formats/file/file_error.hpp"
#include "formats/file/raw_file.hpp"
#include "formats/safetensors/strict_json.hpp"

namespace hortator::weights {
namespace {

constexpr std::uint64_t max_index_bytes = std::uint64_t{1} << 28;

[[noreturn]] void refuse(const std::string& problem) { throw formats::FileError({.what = problem}); }

formats::JsonValue::Object parse_object(std::string_view text) {
  try {
    auto value = formats::parse_strict_json(text);
    if (auto* object = std::get_if<formats::JsonValue::Object>(&value.content)) return std::move(*object);
    value.refuse("an object of names");
  } catch (const formats::JsonFault& fault) {
    refuse(text::concat("it is not a valid weight index: ", fault.what()));
  }
}

const formats::JsonValue::Object& weight_map_in(const formats::JsonValue::Object& index) {
  const auto found = std::ranges::find(index, "weight_map", &std::pair<std::string, formats::JsonValue>::first);
  if (found == index.end()) return index;
  if (const auto* map = std::get_if<formats::JsonValue::Object>(&found->second.content)) return *map;
  refuse("its weight_map is not an object of names");
}

/// A name in a downloaded index must not lead out of its folder. (A symbolic link in the folder may: the owner of the
/// folder made it.)
void require_inside(const std::string& name, const std::string& file) {
  constexpr std::string_view separators("/\\\0", 3);
  const bool is_plain =
      !file.empty() && file != "." && file != ".." && file.find_first_of(separators) == std::string::npos;
  if (is_plain) return;
  throw formats::FileError({.what = text::concat("it places the tensor ", text::quote(name), " in ", text::quote(file)),
                            .why = "the files of an index must be in its own folder"});
}

}  // namespace

WeightMap parse_weight_index(std::string_view json) {
  const auto index = parse_object(json);
  WeightMap files;
  for (const auto& [name, value] : weight_map_in(index)) {
    const auto* file = std::get_if<std::string>(&value.content);
    if (file == nullptr) refuse(text::concat("the file of the tensor ", text::quote(name), " is ", value.described()));
    require_inside(name, *file);
    if (!files.emplace(name, *file).second) refuse(text::concat("it names the tensor ", text::quote(name), " twice"));
  }
  return files;
}

WeightMap read_weight_index(const std::filesystem::path& path) {
  try {
    return parse_weight_index(formats::read_text(path, max_index_bytes));
  } catch (const formats::FileError& error) {
    throw formats::FileError({.what = text::concat("The index ", path, " cannot be read: ", error.what())});
  }
}

}  // namespace hortator::weights

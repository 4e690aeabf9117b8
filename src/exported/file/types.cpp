#include "exported/file/types.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <utility>

#include "core/text/text.hpp"

namespace hortator::exported {
namespace {

using c10::ScalarType;

template <typename Type, std::size_t count>
Type numbered(const Field& field, const std::array<std::pair<std::int64_t, Type>, count>& table, const char* what) {
  const auto number = field.integer();
  const auto* found = std::ranges::find(table, number, [](const auto& row) { return row.first; });
  if (found == table.end()) field.refuse_feature(text::concat("the ", what, " with the number ", number));
  return found->second;
}

constexpr std::array<std::pair<std::int64_t, ScalarType>, 21> scalar_types = {{{1, ScalarType::Byte},
                                                                               {2, ScalarType::Char},
                                                                               {3, ScalarType::Short},
                                                                               {4, ScalarType::Int},
                                                                               {5, ScalarType::Long},
                                                                               {6, ScalarType::Half},
                                                                               {7, ScalarType::Float},
                                                                               {8, ScalarType::Double},
                                                                               {9, ScalarType::ComplexHalf},
                                                                               {10, ScalarType::ComplexFloat},
                                                                               {11, ScalarType::ComplexDouble},
                                                                               {12, ScalarType::Bool},
                                                                               {13, ScalarType::BFloat16},
                                                                               {28, ScalarType::UInt16},
                                                                               {29, ScalarType::Float8_e4m3fn},
                                                                               {30, ScalarType::Float8_e5m2},
                                                                               {31, ScalarType::Float8_e4m3fnuz},
                                                                               {32, ScalarType::Float8_e5m2fnuz},
                                                                               {33, ScalarType::Float8_e8m0fnu},
                                                                               {34, ScalarType::UInt32},
                                                                               {35, ScalarType::UInt64}}};

constexpr std::array<std::pair<std::int64_t, c10::MemoryFormat>, 4> memory_formats = {
    {{1, c10::MemoryFormat::Contiguous},
     {2, c10::MemoryFormat::ChannelsLast},
     {3, c10::MemoryFormat::ChannelsLast3d},
     {4, c10::MemoryFormat::Preserve}}};

constexpr std::array<std::pair<std::int64_t, c10::Layout>, 7> layouts = {{{1, c10::kSparse},
                                                                          {2, c10::kSparseCsr},
                                                                          {3, c10::kSparseCsc},
                                                                          {4, c10::kSparseBsr},
                                                                          {5, c10::kSparseBsc},
                                                                          {6, c10::kMkldnn},
                                                                          {7, c10::kStrided}}};

}  // namespace

c10::ScalarType scalar_type_in(const Field& field) { return numbered(field, scalar_types, "type of elements"); }

c10::MemoryFormat memory_format_in(const Field& field) { return numbered(field, memory_formats, "memory format"); }

c10::Layout layout_in(const Field& field) { return numbered(field, layouts, "layout"); }

c10::Device device_in(const Field& field) {
  auto name = field.at("type").text();
  if (field.has("index")) name += text::concat(":", field.at("index").integer());
  try {
    return c10::Device(name);
  } catch (const std::exception&) {
    field.refuse_feature(text::concat("the device ", text::quote(name)));
  }
}

}  // namespace hortator::exported

#include "formats/columns/arrow_values.hpp"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>
#include <arrow/array.h>
#include <arrow/array/util.h>
#include <arrow/extension_type.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "core/text/text.hpp"
#include "formats/file/file_error.hpp"

namespace hortator::formats {

template <typename Element>
Element ColumnDecoder::null_element() const {
  const double value = null_value_.value_or(0);
  if constexpr (std::is_integral_v<Element> && !std::is_same_v<Element, bool>) {
    // the largest number of 64 bits is not a double: the one above it is
    const double end = std::ldexp(1.0, std::numeric_limits<Element>::digits);
    if (std::trunc(value) != value || value >= end || value < static_cast<double>(std::numeric_limits<Element>::min()))
      throw UsageError({.what = text::concat(".null_value: ", value, " cannot be a value of the column ",
                                             text::quote(spec_.name), ", which holds ", to_string(spec_))});
  }
  return static_cast<Element>(value);
}

namespace {

/// An element of a tensor.
template <typename Element, typename Value>
Element element_of(Value value) {
  if constexpr (std::is_same_v<Value, std::uint64_t>) {
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      throw FileError({.what = text::concat("the number ", value, " does not fit into int64")});
  }
  if constexpr (std::is_same_v<Element, at::Half>) {
    return at::Half(value, at::Half::from_bits());
  } else {
    return static_cast<Element>(value);
  }
}

template <typename Numbers, typename Element>
void append_numbers(ColumnDecoder& column, const arrow::Array& array) {
  const auto& from = static_cast<const Numbers&>(array);
  auto to = at::empty({array.length()}, c10::CppTypeToScalarType<Element>::value);
  auto* out = to.template mutable_data_ptr<Element>();
  for (std::int64_t i = 0; i < array.length(); ++i)
    out[i] = column.is_null(array, i) ? column.null_element<Element>() : element_of<Element>(from.Value(i));
  column.add_numbers(std::move(to));
}

template <typename Texts>
void append_texts(ColumnDecoder& column, const arrow::Array& array) {
  const auto& from = static_cast<const Texts&>(array);
  for (std::int64_t i = 0; i < array.length(); ++i)
    column.add_text(column.is_null(array, i) ? std::string() : std::string(from.GetView(i)));
}

/// A type of values: what it becomes, and how.
struct KnownType {
  arrow::Type::type id;
  std::optional<at::ScalarType> type;  ///< nothing: text
  void (*append)(ColumnDecoder&, const arrow::Array&);
};

template <typename Numbers, typename Element>
constexpr KnownType numbers(arrow::Type::type id) {
  return {.id = id, .type = c10::CppTypeToScalarType<Element>::value, .append = append_numbers<Numbers, Element>};
}

template <typename Texts>
constexpr KnownType texts(arrow::Type::type id) {
  return {.id = id, .type = {}, .append = append_texts<Texts>};
}

// Times are their numbers, in the unit of the file.
constexpr std::array known_types = {
    numbers<arrow::BooleanArray, bool>(arrow::Type::BOOL),
    numbers<arrow::Int8Array, std::int8_t>(arrow::Type::INT8),
    numbers<arrow::UInt8Array, std::uint8_t>(arrow::Type::UINT8),
    numbers<arrow::Int16Array, std::int16_t>(arrow::Type::INT16),
    numbers<arrow::UInt16Array, std::int32_t>(arrow::Type::UINT16),
    numbers<arrow::Int32Array, std::int32_t>(arrow::Type::INT32),
    numbers<arrow::UInt32Array, std::int64_t>(arrow::Type::UINT32),
    numbers<arrow::Int64Array, std::int64_t>(arrow::Type::INT64),
    numbers<arrow::UInt64Array, std::int64_t>(arrow::Type::UINT64),
    numbers<arrow::HalfFloatArray, at::Half>(arrow::Type::HALF_FLOAT),
    numbers<arrow::FloatArray, float>(arrow::Type::FLOAT),
    numbers<arrow::DoubleArray, double>(arrow::Type::DOUBLE),
    numbers<arrow::Date32Array, std::int32_t>(arrow::Type::DATE32),
    numbers<arrow::Date64Array, std::int64_t>(arrow::Type::DATE64),
    numbers<arrow::Time32Array, std::int32_t>(arrow::Type::TIME32),
    numbers<arrow::Time64Array, std::int64_t>(arrow::Type::TIME64),
    numbers<arrow::TimestampArray, std::int64_t>(arrow::Type::TIMESTAMP),
    numbers<arrow::DurationArray, std::int64_t>(arrow::Type::DURATION),
    texts<arrow::StringArray>(arrow::Type::STRING),
    texts<arrow::LargeStringArray>(arrow::Type::LARGE_STRING),
    texts<arrow::BinaryArray>(arrow::Type::BINARY),
    texts<arrow::LargeBinaryArray>(arrow::Type::LARGE_BINARY),
    texts<arrow::FixedSizeBinaryArray>(arrow::Type::FIXED_SIZE_BINARY),
};

const KnownType* find_type(arrow::Type::type id) {
  const auto* found = std::ranges::find(known_types, id, &KnownType::id);
  return found == known_types.end() ? nullptr : found;
}

bool is_list_type(arrow::Type::type type) {
  return type == arrow::Type::LIST || type == arrow::Type::LARGE_LIST || type == arrow::Type::FIXED_SIZE_LIST;
}

/// The type that an extension stores its values as.
std::shared_ptr<arrow::DataType> storage_of(std::shared_ptr<arrow::DataType> type) {
  while (type->id() == arrow::Type::EXTENSION) type = static_cast<const arrow::ExtensionType&>(*type).storage_type();
  return type;
}

}  // namespace

ColumnSpec column_spec(const arrow::Field& field, const std::filesystem::path& path) {
  ColumnSpec spec{.name = field.name()};
  auto type = storage_of(field.type());
  for (; is_list_type(type->id()); ++spec.depth)
    type = storage_of(static_cast<const arrow::BaseListType&>(*type).value_type());
  if (type->id() == arrow::Type::DICTIONARY) type = static_cast<const arrow::DictionaryType&>(*type).value_type();
  if (const auto* known = find_type(type->id())) {
    spec.type = known->type;
    return spec;
  }
  throw UsageError({.what = text::concat("The column ", text::quote(spec.name), " of ", path, " is of the type ",
                                         field.type()->ToString()),
                    .why = "columns of numbers, texts, and lists of them can be read",
                    .hint = "name the other columns: .columns"});
}

ColumnDecoder::ColumnDecoder(const ColumnSpec& spec, std::optional<double> null_value)
    : spec_(spec), null_value_(null_value) {
  values_.offsets.resize(spec.depth, {0});
}

void ColumnDecoder::append(const arrow::Array& rows) {
  // offsets and indices within the array, and the encoding of texts
  if (const auto status = rows.ValidateFull(); !status.ok()) throw FileError({.what = status.ToString()});
  append_level(rows, 0);
}

ColumnValues ColumnDecoder::finish() {
  if (spec_.type) values_.numbers = numbers_.empty() ? at::empty({0}, *spec_.type) : at::cat(numbers_);
  return std::move(values_);
}

bool ColumnDecoder::is_null(const arrow::Array& array, std::int64_t at) const {
  if (!array.IsNull(at)) return false;
  if (null_value_) return true;
  throw FileError({.what = text::concat("entry ", at, " is null"),
                   .hint = "set what stands for nulls: .null_value = 0; texts and lists are then empty"});
}

void ColumnDecoder::append_level(const arrow::Array& array, std::size_t level) {
  switch (array.type_id()) {
    case arrow::Type::EXTENSION:
      return append_level(*static_cast<const arrow::ExtensionArray&>(array).storage(), level);
    case arrow::Type::LIST:
      return append_lists(static_cast<const arrow::ListArray&>(array), level);
    case arrow::Type::LARGE_LIST:
      return append_lists(static_cast<const arrow::LargeListArray&>(array), level);
    case arrow::Type::FIXED_SIZE_LIST:
      return append_lists(static_cast<const arrow::FixedSizeListArray&>(array), level);
    case arrow::Type::DICTIONARY:
      return append_entries(array);
    default:
      break;
  }
  const auto* known = find_type(array.type_id());
  if (known == nullptr || known->type != spec_.type || level != spec_.depth)
    throw FileError({.what = text::concat("values of the type ", array.type()->ToString(), " were read")});
  known->append(*this, array);
}

template <typename List>
void ColumnDecoder::append_lists(const List& lists, std::size_t level) {
  auto& offsets = values_.offsets.at(level);
  for (std::int64_t i = 0; i < lists.length(); ++i)
    offsets.push_back(offsets.back() + (is_null(lists, i) ? 0 : static_cast<std::int64_t>(lists.value_length(i))));
  const auto entries = lists.Flatten();  // without what null lists may hold
  if (!entries.ok()) throw FileError({.what = entries.status().ToString()});
  append_level(**entries, level + 1);
}

void ColumnDecoder::append_entries(const arrow::Array& array) {
  const auto& coded = static_cast<const arrow::DictionaryArray&>(array);
  ColumnDecoder decoder({.name = spec_.name, .type = spec_.type, .depth = 0}, null_value_);
  decoder.append_level(*coded.dictionary(), 0);
  if (array.null_count() > 0) {  // what stands for nulls is one more entry
    const auto null = arrow::MakeArrayOfNull(coded.dictionary()->type(), 1);
    if (!null.ok()) throw FileError({.what = null.status().ToString()});
    decoder.append_level(**null, 0);
  }
  const auto entries = decoder.finish();
  auto index = at::empty({array.length()}, at::kLong);
  auto* entry = index.mutable_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < array.length(); ++i)
    entry[i] = is_null(array, i) ? coded.dictionary()->length() : coded.GetValueIndex(i);
  if (spec_.type) return add_numbers(entries.numbers.index_select(0, index));
  for (std::int64_t i = 0; i < array.length(); ++i) add_text(entries.texts.at(static_cast<std::size_t>(entry[i])));
}

}  // namespace hortator::formats

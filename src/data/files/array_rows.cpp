#include <array>
#include <hortator/datasets/array_rows.hpp>

#include "core/text/text.hpp"
#include "data/files/npy_header.hpp"
#include "data/files/rows.hpp"
#include "formats/file/file_error.hpp"
#include "formats/tensor/stored_rows.hpp"

namespace hortator {

namespace data {

struct ArrayFile {
  ArrayFile(const std::filesystem::path& path,
            const std::function<formats::StoredRows(const formats::FixedFile&)>& find)
      : file(path), stored(find(file)) {}

  formats::FixedFile file;
  formats::StoredRows stored;
};

namespace {

formats::StoredRows read_npy_header(const formats::FixedFile& file) {
  std::array<std::uint8_t, npy_beginning_bytes> beginning{};
  const auto read_bytes = std::min<std::uint64_t>(beginning.size(), file.bytes());
  file.read_at(0, beginning.data(), read_bytes);
  const auto offset = npy_data_offset({beginning.data(), read_bytes});
  if (offset > file.bytes()) throw NpyFault("it ends within its header");
  const auto text_at = beginning[6] == 1 ? 10 : 12;
  std::string text(offset - text_at, '\0');
  file.read_at(text_at, text.data(), text.size());
  auto spec = parse_npy_header(text);
  if (spec.shape.empty()) throw NpyFault("it holds one number and has no rows");
  const auto bytes = formats::byte_count(spec);
  if (!bytes || static_cast<std::uint64_t>(*bytes) != file.bytes() - offset) {
    throw NpyFault(text::concat("its ", formats::to_string(spec), " does not fill the ", file.bytes() - offset,
                                " bytes after its header: it was truncated or is damaged"));
  }
  const auto rows = spec.shape.front();
  spec.shape.erase(spec.shape.begin());
  return {.row = std::move(spec), .rows = rows, .offset = offset};
}

formats::StoredRows find_npy(const formats::FixedFile& file) {
  try {
    return read_npy_header(file);
  } catch (const NpyFault& fault) {
    throw formats::FileError({.what = text::concat(file.path(), " cannot be read as an .npy array: ", fault.what())});
  }
}

formats::StoredRows find_raw(const formats::FixedFile& file, const RawArray& array) {
  formats::StoredRows stored{.row = {.type = array.type, .shape = array.row_shape},
                             .rows = 0,
                             .offset = static_cast<std::uint64_t>(array.offset)};
  const auto row_bytes = formats::byte_count(stored.row);
  if (!row_bytes || *row_bytes == 0 || array.offset < 0)
    throw UsageError({.what = text::concat("Rows of ", formats::to_string(stored.row), " from byte ", array.offset,
                                           " on are not possible in a file")});
  const auto size = static_cast<std::uint64_t>(*row_bytes);
  if (file.bytes() < stored.offset || (file.bytes() - stored.offset) % size != 0) {
    throw formats::FileError(
        {.what = text::concat(file.path(), " has ", file.bytes(), " bytes, expected ", array.offset,
                              " and whole rows of ", size, " (", formats::to_string(stored.row), ")"),
         .hint = "it was truncated, or it has another type or shape"});
  }
  stored.rows = static_cast<std::int64_t>((file.bytes() - stored.offset) / size);
  return stored;
}

}  // namespace
}  // namespace data

ArrayRows::ArrayRows(const std::filesystem::path& npy)
    : array_(std::make_shared<const data::ArrayFile>(npy, data::find_npy)) {}

ArrayRows::ArrayRows(const std::filesystem::path& path, const RawArray& array)
    : array_(std::make_shared<const data::ArrayFile>(
          path, [&](const formats::FixedFile& file) { return data::find_raw(file, array); })) {}

std::int64_t ArrayRows::size() const { return array_->stored.rows; }

at::Tensor ArrayRows::get(std::int64_t row) const { return get_batch({&row, 1})[0]; }

at::Tensor ArrayRows::get_batch(std::span<const std::int64_t> rows) const {
  data::require_samples(rows, size(), array_->file.path());
  auto batch = formats::read_rows(array_->file, array_->stored, rows);
  array_->file.require_unchanged();
  return batch;
}

}  // namespace hortator

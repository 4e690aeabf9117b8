#include <arrow/memory_pool.h>
#include <arrow/util/config.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/schema.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>
#include <parquet/properties.h>

#include <mutex>

#include "formats/columns/arrow_file.hpp"
#include "formats/columns/arrow_input.hpp"
#include "formats/columns/arrow_status.hpp"

namespace hortator::formats {
namespace {

/// Adds the columns of a field and of what it consists of.
void add_leaves(const parquet::arrow::SchemaField& field, std::vector<int>& leaves) {
  if (field.is_leaf()) leaves.push_back(field.column_index);
  for (const auto& child : field.children) add_leaves(child, leaves);
}

/// A Parquet file: a group is one of its row groups.
class ParquetFile final : public ArrowFile {
 public:
  explicit ParquetFile(const std::shared_ptr<const FixedFile>& file) : ArrowFile(file) {
    parquet::ReaderProperties properties;
    properties.set_page_checksum_verification(true);
    parquet::ArrowReaderProperties reading;  // on the calling thread
    reading.set_use_threads(false);
    reading.set_pre_buffer(false);
    parquet::arrow::FileReaderBuilder builder;
    require(builder.Open(std::make_shared<ArrowInput>(file), properties));
    require(builder.memory_pool(arrow::default_memory_pool())->properties(reading)->Build(&reader_));
    require(reader_->GetSchema(&schema_));
  }

  std::shared_ptr<arrow::Schema> schema() const override { return schema_; }

 private:
  std::vector<std::int64_t> list_groups() override {
    const auto metadata = reader_->parquet_reader()->metadata();
    std::vector<std::int64_t> rows;
    for (int group = 0; group < metadata->num_row_groups(); ++group)
      rows.push_back(metadata->RowGroup(group)->num_rows());
    return rows;
  }

  std::shared_ptr<arrow::Table> read_fields(std::size_t group, const std::vector<int>& fields) const override {
    std::vector<int> leaves;
    for (const auto field : fields)
      add_leaves(reader_->manifest().schema_fields.at(static_cast<std::size_t>(field)), leaves);
    const std::scoped_lock lock(mutex_);
#if ARROW_VERSION_MAJOR >= 24
    return require(reader_->ReadRowGroup(static_cast<int>(group), leaves));
#else
    std::shared_ptr<arrow::Table> table;
    require(reader_->ReadRowGroup(static_cast<int>(group), leaves, &table));
    return table;
#endif
  }

  std::unique_ptr<parquet::arrow::FileReader> reader_;
  std::shared_ptr<arrow::Schema> schema_;
  mutable std::mutex mutex_;  // a reader is for one thread
};

}  // namespace

std::unique_ptr<ArrowFile> open_parquet(const std::shared_ptr<const FixedFile>& file) {
  return std::make_unique<ParquetFile>(file);
}

}  // namespace hortator::formats

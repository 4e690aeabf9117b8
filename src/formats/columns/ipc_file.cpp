#include <arrow/ipc/dictionary.h>
#include <arrow/ipc/message.h>
#include <arrow/ipc/options.h>
#include <arrow/ipc/reader.h>

#include <algorithm>
#include <array>

#include "formats/columns/arrow_file.hpp"
#include "formats/columns/arrow_input.hpp"
#include "formats/columns/arrow_status.hpp"

namespace hortator::formats {
namespace {

arrow::ipc::IpcReadOptions options_of(const std::vector<int>& fields) {
  auto options = arrow::ipc::IpcReadOptions::Defaults();
  options.use_threads = false;
  options.included_fields = fields;
  return options;
}

std::shared_ptr<arrow::Table> table_of(std::shared_ptr<arrow::RecordBatch> batch) {
  const auto schema = batch->schema();
  return require(arrow::Table::FromRecordBatches(schema, {std::move(batch)}));
}

/// An Arrow IPC file, as Feather's are: a group is one of its record batches.
class IpcFile final : public ArrowFile {
 public:
  explicit IpcFile(const std::shared_ptr<const FixedFile>& file) : ArrowFile(file), schema_(open({})->schema()) {}

  std::shared_ptr<arrow::Schema> schema() const override { return schema_; }

 private:
  std::shared_ptr<arrow::ipc::RecordBatchFileReader> open(const std::vector<int>& fields) const {
    return require(arrow::ipc::RecordBatchFileReader::Open(std::make_shared<ArrowInput>(file()), options_of(fields)));
  }

  // Only batches know how many rows they have: one column of them is read.
  std::vector<std::int64_t> list_groups() override {
    const auto reader = open({fields().front()});
    std::vector<std::int64_t> rows;
    for (int batch = 0; batch < reader->num_record_batches(); ++batch)
      rows.push_back(require(reader->ReadRecordBatch(batch))->num_rows());
    return rows;
  }

  std::shared_ptr<arrow::Table> read_fields(std::size_t group, const std::vector<int>& fields) const override {
    return table_of(require(open(fields)->ReadRecordBatch(static_cast<int>(group))));
  }

  std::shared_ptr<arrow::Schema> schema_;
};

/// Where a message of a stream is.
struct MessagePlace {
  std::int64_t metadata, body;
};

/// An Arrow IPC stream, as Hugging Face's data sets are stored: a group is one of its record batches.
class IpcStream final : public ArrowFile {
 public:
  explicit IpcStream(const std::shared_ptr<const FixedFile>& file) : ArrowFile(file) { scan(); }

  std::shared_ptr<arrow::Schema> schema() const override { return schema_; }

 private:
  /// Finds all messages by their lengths, without reading what they hold.
  void scan() {
    ArrowInput input(file());
    const auto size = require(input.GetSize());
    std::int64_t at = 0;
    while (at < size) {
      std::array<std::int32_t, 2> prefix{};
      if (require(input.ReadAt(at, sizeof prefix, prefix.data())) < std::int64_t{sizeof prefix}) throw_end(at);
      constexpr std::int32_t continuation = -1;
      if (prefix[0] != continuation) throw FileError({.what = text::concat("no message begins at byte ", at)});
      if (prefix[1] == 0) return;  // the end of the stream
      const MessagePlace place{.metadata = at + std::int64_t{sizeof prefix},
                               .body = at + std::int64_t{sizeof prefix} + prefix[1]};
      if (prefix[1] < 0 || place.body > size) throw_end(at);
      const auto length = add(place);
      if (length < 0 || length > size - place.body) throw_end(at);
      at = place.body + length;
    }
  }

  [[noreturn]] static void throw_end(std::int64_t at) {
    throw FileError({.what = text::concat("the message at byte ", at, " is incomplete"),
                     .hint = "the file may have been truncated"});
  }

  std::shared_ptr<arrow::Buffer> metadata_of(const MessagePlace& place) const {
    return require(ArrowInput(file()).ReadAt(place.metadata, place.body - place.metadata));
  }

  /// Returns the length of the message's body.
  std::int64_t add(const MessagePlace& place) {
    const auto message = require(arrow::ipc::Message::Open(metadata_of(place), nullptr));
    if (message->type() == arrow::ipc::MessageType::SCHEMA) {
      schema_ = require(arrow::ipc::ReadSchema(*message, &dictionaries_));
    } else if (message->type() == arrow::ipc::MessageType::RECORD_BATCH && schema_) {
      batches_.push_back(place);
    } else {
      throw FileError({.what = text::concat("the stream has a message of the type ",
                                            arrow::ipc::FormatMessageType(message->type())),
                       .why = "only record batches are read from streams",
                       .hint = "write it as a file, with pyarrow.feather.write_feather()"});
    }
    return message->body_length();
  }

  std::shared_ptr<arrow::RecordBatch> read_batch(const MessagePlace& place, const std::vector<int>& fields) const {
    ArrowInput body(file(), place.body);
    return require(
        arrow::ipc::ReadRecordBatch(*metadata_of(place), schema_, &dictionaries_, options_of(fields), &body));
  }

  std::vector<std::int64_t> list_groups() override {
    std::vector<std::int64_t> rows;
    for (const auto& place : batches_) rows.push_back(read_batch(place, {fields().front()})->num_rows());
    return rows;
  }

  std::shared_ptr<arrow::Table> read_fields(std::size_t group, const std::vector<int>& fields) const override {
    return table_of(read_batch(batches_.at(group), fields));
  }

  std::shared_ptr<arrow::Schema> schema_;
  arrow::ipc::DictionaryMemo dictionaries_;
  std::vector<MessagePlace> batches_;
};

}  // namespace

std::unique_ptr<ArrowFile> open_arrow_file(const std::shared_ptr<const FixedFile>& file) {
  return std::make_unique<IpcFile>(file);
}

std::unique_ptr<ArrowFile> open_arrow_stream(const std::shared_ptr<const FixedFile>& file) {
  auto stream = std::make_unique<IpcStream>(file);
  if (!stream->schema()) throw FileError({.what = "the stream has no schema"});
  return stream;
}

}  // namespace hortator::formats

#pragma once

#include <arrow/io/interfaces.h>
#include <arrow/result.h>
#include <arrow/status.h>

#include <cstdint>
#include <memory>

#include "formats/file/fixed_file.hpp"

namespace hortator::formats {

/// A file, or its bytes from `begin` on, as Arrow reads it.
class ArrowInput final : public arrow::io::RandomAccessFile {
 public:
  explicit ArrowInput(std::shared_ptr<const FixedFile> file, std::int64_t begin = 0);

  using arrow::io::RandomAccessFile::ReadAt;

  arrow::Status Close() override;
  bool closed() const override { return closed_; }
  arrow::Result<std::int64_t> Tell() const override { return position_; }
  arrow::Status Seek(std::int64_t position) override;
  arrow::Result<std::int64_t> GetSize() override { return size_; }
  arrow::Result<std::int64_t> Read(std::int64_t bytes, void* out) override;
  arrow::Result<std::shared_ptr<arrow::Buffer>> Read(std::int64_t bytes) override;
  arrow::Result<std::int64_t> ReadAt(std::int64_t position, std::int64_t bytes, void* out) override;
  arrow::Result<std::shared_ptr<arrow::Buffer>> ReadAt(std::int64_t position, std::int64_t bytes) override;

 private:
  std::int64_t readable(std::int64_t position, std::int64_t bytes) const;

  std::shared_ptr<const FixedFile> file_;
  std::int64_t begin_, size_;
  std::int64_t position_ = 0;
  bool closed_ = false;
};

}  // namespace hortator::formats

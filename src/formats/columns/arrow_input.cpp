#include "formats/columns/arrow_input.hpp"

#include <arrow/buffer.h>

#include <algorithm>
#include <exception>
#include <utility>

namespace hortator::formats {

ArrowInput::ArrowInput(std::shared_ptr<const FixedFile> file, std::int64_t begin)
    : file_(std::move(file)), begin_(begin), size_(static_cast<std::int64_t>(file_->bytes()) - begin) {}

arrow::Status ArrowInput::Close() {
  closed_ = true;
  return arrow::Status::OK();
}

arrow::Status ArrowInput::Seek(std::int64_t position) {
  if (position < 0 || position > size_) return arrow::Status::IOError("position ", position, " of ", size_);
  position_ = position;
  return arrow::Status::OK();
}

std::int64_t ArrowInput::readable(std::int64_t position, std::int64_t bytes) const {
  return std::clamp<std::int64_t>(size_ - position, 0, std::max<std::int64_t>(bytes, 0));
}

arrow::Result<std::int64_t> ArrowInput::ReadAt(std::int64_t position, std::int64_t bytes, void* out) {
  if (position < 0 || position > size_) return arrow::Status::IOError("position ", position, " of ", size_);
  const auto found = readable(position, bytes);
  try {
    file_->read_at(static_cast<std::uint64_t>(begin_ + position), out, static_cast<std::size_t>(found));
  } catch (const std::exception& error) {
    return arrow::Status::IOError(error.what());
  }
  return found;
}

arrow::Result<std::shared_ptr<arrow::Buffer>> ArrowInput::ReadAt(std::int64_t position, std::int64_t bytes) {
  // a damaged file may ask for more than there is: memory is only taken for what can be read
  ARROW_ASSIGN_OR_RAISE(auto buffer, arrow::AllocateResizableBuffer(readable(position, bytes)));
  ARROW_ASSIGN_OR_RAISE(const auto found, ReadAt(position, buffer->size(), buffer->mutable_data()));
  ARROW_RETURN_NOT_OK(buffer->Resize(found));
  return std::shared_ptr<arrow::Buffer>(std::move(buffer));
}

arrow::Result<std::int64_t> ArrowInput::Read(std::int64_t bytes, void* out) {
  ARROW_ASSIGN_OR_RAISE(const auto found, ReadAt(position_, bytes, out));
  position_ += found;
  return found;
}

arrow::Result<std::shared_ptr<arrow::Buffer>> ArrowInput::Read(std::int64_t bytes) {
  ARROW_ASSIGN_OR_RAISE(auto buffer, ReadAt(position_, bytes));
  position_ += buffer->size();
  return buffer;
}

}  // namespace hortator::formats

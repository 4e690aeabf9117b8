#include "step/recompute/spill_file.hpp"

namespace hortator::step {
namespace {

formats::RawFile made_in(const std::filesystem::path& folder) {
  formats::make_folder(folder);
  return formats::RawFile::create_unnamed(folder);
}

}  // namespace

SpillFile::SpillFile(const std::filesystem::path& folder) : file_(made_in(folder)) {}

std::int64_t SpillFile::write(const void* data, std::size_t bytes) {
  const auto position = reserve(bytes);
  try {
    file_.write_at(position, data, bytes);
  } catch (...) {
    release(position, bytes);
    throw;
  }
  return position;
}

std::int64_t SpillFile::reserve(std::size_t bytes) {
  const std::scoped_lock lock(mutex_);
  if (const auto found = free_.find(bytes); found != free_.end()) {
    const auto position = found->second;
    free_.erase(found);
    return position;
  }
  const auto position = end_;
  end_ += static_cast<std::int64_t>(bytes);
  return position;
}

void SpillFile::release(std::int64_t position, std::size_t bytes) noexcept {
  const std::scoped_lock lock(mutex_);
  free_.emplace(bytes, position);
}

std::int64_t SpillFile::bytes() const {
  const std::scoped_lock lock(mutex_);
  return end_;
}

}  // namespace hortator::step

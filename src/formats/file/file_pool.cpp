#include "formats/file/file_pool.hpp"

#include <algorithm>
#include <utility>

namespace hortator::formats {

std::size_t FilePool::add(const std::filesystem::path& path) {
  auto file = std::make_shared<const FixedFile>(path);
  known_.push_back({.path = path, .version = file->found()});
  keep(size() - 1, std::move(file));
  return size() - 1;
}

// Opening may take long on a shared file system: other threads read meanwhile.
std::shared_ptr<const FixedFile> FilePool::get(std::size_t number) const {
  if (auto file = find_open(number)) return file;
  auto file = std::make_shared<const FixedFile>(path(number), known_[number].version);
  keep(number, file);
  return file;
}

void FilePool::require_unchanged() const {
  for (std::size_t number = 0; number < size(); ++number) get(number)->require_unchanged();
}

std::shared_ptr<const FixedFile> FilePool::find_open(std::size_t number) const {
  const std::scoped_lock lock(mutex_);
  if (const auto at = std::ranges::find(open_, number); at != open_.end()) std::rotate(at, at + 1, open_.end());
  return known_[number].file;
}

void FilePool::keep(std::size_t number, std::shared_ptr<const FixedFile> file) const {
  std::shared_ptr<const FixedFile> closed;  // behind the lock
  const std::scoped_lock lock(mutex_);
  std::erase(open_, number);
  open_.push_back(number);
  known_[number].file = std::move(file);
  if (open_.size() <= max_open_) return;
  closed = std::exchange(known_[open_.front()].file, nullptr);
  open_.erase(open_.begin());
}

}  // namespace hortator::formats

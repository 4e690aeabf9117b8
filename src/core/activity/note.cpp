#include "core/activity/note.hpp"

#include <mutex>
#include <utility>

namespace hortator::activity {
namespace {

struct Shown {
  std::mutex mutex;
  std::string text;
};

Shown& shown() {
  static auto& instance = *new Shown;
  return instance;
}

void show(std::string text) {
  const std::scoped_lock lock(shown().mutex);
  shown().text = std::move(text);
}

}  // namespace

Note::Note(std::string text) { show(std::move(text)); }
Note::~Note() { show({}); }

std::string note() {
  const std::scoped_lock lock(shown().mutex);
  return shown().text;
}

}  // namespace hortator::activity

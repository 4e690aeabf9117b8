#include "checkpoint/format.hpp"

#include "core/text/text.hpp"

namespace hortator::checkpoint {
namespace {

/// Whether `name` is "<stem><digits><end>".
bool is_numbered(std::string_view name, std::string_view stem, std::string_view end) {
  if (name.size() <= stem.size() + end.size() || !name.starts_with(stem) || !name.ends_with(end)) return false;
  name.remove_prefix(stem.size());
  name.remove_suffix(end.size());
  return name.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

std::string data_file(std::size_t index, std::size_t files) {
  return files == 1 ? std::string("state.h5") : text::concat("state-", index, ".h5");
}

std::string frozen_file(std::size_t index, std::size_t files) {
  return files == 1 ? std::string("frozen.h5") : text::concat("frozen-", index, ".h5");
}

std::string stored_file(std::size_t index, std::size_t state_files, std::size_t files) {
  return index < state_files ? data_file(index, state_files) : frozen_file(index - state_files, files - state_files);
}

bool is_frozen_file(std::string_view name) { return name == "frozen.h5" || is_numbered(name, "frozen-", ".h5"); }

bool is_data_file(std::string_view name) {
  return name == "state.h5" || is_numbered(name, "state-", ".h5") || is_frozen_file(name);
}

std::string report_file(int rank) { return text::concat("written-", rank); }

bool is_our_file(const std::string& name) {
  return name == manifest_file || name == view_file || is_data_file(name) || is_numbered(name, "written-", "") ||
         is_numbered(name, "written-", ".part");
}

}  // namespace hortator::checkpoint

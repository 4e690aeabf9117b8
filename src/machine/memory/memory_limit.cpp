#include "machine/memory/memory_limit.hpp"

#include <algorithm>
#include <filesystem>
#include <string>

#include "core/text/text.hpp"
#include "core/whole_file.hpp"
#include "machine/memory/freed_memory.hpp"

namespace hortator::machine {
namespace {

std::string content(const std::filesystem::path& file) { return core::read_whole(file).value_or(""); }

std::optional<std::size_t> number(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  long long value = 0;
  if (!text::parse_integer(text, value) || value < 0) return {};
  return static_cast<std::size_t>(value);
}

// "/a/b" of the line "0::/a/b" (version 2 of control groups; version 1 has other numbers).
std::string own_group() {
  for (const auto& line : text::split(content("/proc/self/cgroup"), '\n')) {
    if (line.starts_with("0::")) return line.substr(3);
  }
  return {};
}

// The number on the line that starts with `key`.
std::optional<std::size_t> value_of(std::string_view key, std::string_view lines) {
  for (const auto& line : text::split(std::string(lines), '\n')) {
    if (!line.starts_with(key)) continue;
    const auto begin = line.find_first_of("0123456789", key.size());
    if (begin == std::string::npos) return {};
    const auto end = line.find_first_not_of("0123456789", begin);
    return number(std::string_view(line).substr(begin, end == std::string::npos ? end : end - begin));
  }
  return {};
}

}  // namespace

std::optional<std::size_t> parse_mem_available(std::string_view meminfo) {
  const auto kib = value_of("MemAvailable:", meminfo);
  if (!kib) return {};
  return *kib * 1024;
}

std::optional<std::size_t> left_in_group(std::string_view max, std::string_view current, std::string_view stat) {
  const auto limit = number(max);
  const auto used = number(current);
  if (!limit || !used) return {};
  const auto cached = value_of("active_file ", stat).value_or(0) + value_of("inactive_file ", stat).value_or(0);
  const auto needed = *used - std::min(*used, cached);
  return *limit > needed ? *limit - needed : 0;
}

std::optional<std::size_t> available_memory() {
  return_freed_memory();  // otherwise memory that this process can reuse counts as taken
  auto min_left = parse_mem_available(content("/proc/meminfo"));
  // The limits of all enclosing groups apply as well.
  for (std::filesystem::path group = own_group(); !group.empty(); group = group.parent_path()) {
    const auto folder = std::filesystem::path("/sys/fs/cgroup") / group.relative_path();
    const auto left = left_in_group(content(folder / "memory.max"), content(folder / "memory.current"),
                                    content(folder / "memory.stat"));
    if (left) min_left = std::min(min_left.value_or(*left), *left);
    if (group == group.root_path()) break;
  }
  return min_left;
}

}  // namespace hortator::machine

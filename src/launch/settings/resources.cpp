#include "launch/settings/resources.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <hortator/error.hpp>
#include <utility>

#include "core/text/text.hpp"

namespace hortator::launching {
namespace {

std::optional<long long> whole(std::string_view digits, long long max = 100'000'000) {
  long long value = 0;
  if (digits.empty() || digits.size() > 12 || digits.find_first_not_of("0123456789") != std::string_view::npos)
    return {};
  return text::parse_integer(digits, value) && value <= max ? std::optional(value) : std::nullopt;
}

bool is_type_name(std::string_view name) {
  return !name.empty() && std::isalpha(static_cast<unsigned char>(name.front())) != 0 &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
         });
}

// "a100:4" or "a100".
std::optional<int> count_of_type(const std::string& text) {
  const auto colon = text.rfind(':');
  const auto name = text.substr(0, colon);
  if (!is_type_name(name) || whole(name)) return {};
  if (colon == std::string::npos) return 1;
  const auto count = whole(text.substr(colon + 1), 1024);
  return count ? std::optional(static_cast<int>(*count)) : std::nullopt;
}

// The number of tasks of "0-8:2" or "5".
std::optional<long long> tasks_of(const std::string& part) {
  const auto dash = part.find('-');
  if (dash == std::string::npos) return whole(part) ? std::optional(1LL) : std::nullopt;
  const auto colon = part.find(':');
  const auto first = whole(part.substr(0, dash));
  const auto last = whole(part.substr(dash + 1, colon == std::string::npos ? colon : colon - dash - 1));
  const auto step = colon == std::string::npos ? std::optional(1LL) : whole(part.substr(colon + 1));
  if (!first || !last || !step || *step == 0 || *last < *first) return {};
  return (*last - *first) / *step + 1;
}

constexpr std::array<std::pair<std::string_view, std::string_view>, 7> chunk_keys = {{{"ncpus", "cpus_per_node"},
                                                                                      {"mpiprocs", "ranks_per_node"},
                                                                                      {"ppn", "ranks_per_node"},
                                                                                      {"ompthreads", "threads"},
                                                                                      {"ngpus", "gpus_per_node"},
                                                                                      {"gpus", "gpus_per_node"},
                                                                                      {"mem", "mem"}}};

// "2:ncpus=8:mpiprocs=4": the number of chunks, and what each of them has.
void read_chunks(const std::string& value, std::vector<PbsResource>& found) {
  if (value.find('+') != std::string::npos) {
    throw UsageError({.what = "-l select: " + text::quote(value) + " asks for chunks of different kinds",
                      .why = "all nodes of a job have the same number of ranks",
                      .hint = "ask for one kind: -l select=2:ncpus=64:mpiprocs=4"});
  }
  const auto parts = text::split(value, ':');
  std::size_t i = 0;
  if (whole(parts[0])) {
    found.push_back({"nodes", parts[0]});
    ++i;
  } else {
    found.push_back({"nodes", "1"});
  }
  for (; i < parts.size(); ++i) {
    const auto end = parts[i].find('=');
    const auto name = parts[i].substr(0, end);
    const auto known =
        std::find_if(chunk_keys.begin(), chunk_keys.end(), [&](const auto& key) { return key.first == name; });
    if (known != chunk_keys.end() && end != std::string::npos) {
      found.push_back({known->second, parts[i].substr(end + 1)});
    } else {
      found.push_back({"chunk_resources", parts[i]});
    }
  }
}

}  // namespace

std::optional<Gpus> parse_gpus(std::string_view text) {
  if (const auto count = whole(text, 1024)) return Gpus{.count = static_cast<int>(*count)};
  Gpus gpus{.types = std::string(text)};
  for (const auto& part : text::split(std::string(text), ',')) {
    const auto count = count_of_type(part);
    if (!count) return {};
    gpus.count += *count;
  }
  return gpus;
}

std::optional<long long> parse_memory(std::string_view text) {
  const auto end = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto amount = whole(text.substr(0, end), 1'000'000'000'000);
  if (!amount) return {};
  std::string unit;
  for (const char c : text.substr(end)) unit += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  if (unit.size() > 1 && unit.ends_with('B')) unit.pop_back();
  if (unit.empty() || unit == "M") return amount;
  if (unit == "K") return (*amount + 1023) / 1024;
  if (unit == "G") return *amount * 1024;
  return unit == "T" ? std::optional(*amount * 1024 * 1024) : std::nullopt;
}

std::optional<ArrayTasks> parse_array(std::string_view text) {
  const auto percent = std::min(text.find('%'), text.size());
  ArrayTasks tasks{.numbers = std::string(text.substr(0, percent))};
  if (percent < text.size()) {
    const auto limit = whole(text.substr(percent + 1));
    if (!limit || *limit == 0) return {};
    tasks.at_once = static_cast<int>(*limit);
  }
  for (const auto& part : text::split(tasks.numbers, ',')) {
    const auto count = tasks_of(part);
    if (!count) return {};
    tasks.count += *count;
  }
  return tasks;
}

std::vector<PbsResource> parse_pbs_resources(const std::string& text) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 5> job_keys = {
      {{"walltime", "time"},
       {"ncpus", "cpus_per_node"},
       {"ngpus", "gpus_per_node"},
       {"mem", "mem"},
       {"filesystems", "filesystems"}}};
  std::vector<PbsResource> found;
  for (const auto& part : text::split(text, ',')) {
    const auto end = part.find('=');
    if (end == std::string::npos || end == 0 || end + 1 == part.size())
      throw UsageError({.what = "-l: expected NAME=VALUE, got " + text::quote(part),
                        .hint = "such as -l select=2:ncpus=64:mpiprocs=4 -l walltime=01:00:00"});
    const auto name = part.substr(0, end);
    const auto value = part.substr(end + 1);
    const auto known =
        std::find_if(job_keys.begin(), job_keys.end(), [&](const auto& key) { return key.first == name; });
    if (name == "select" || name == "nodes") {
      read_chunks(value, found);
    } else if (known != job_keys.end()) {
      found.push_back({known->second, value});
    } else {
      found.push_back({"", "-l " + part});
    }
  }
  return found;
}

std::optional<std::string> mail_types_of_points(std::string_view points) {
  if (points == "n") return "NONE";
  std::vector<std::string> types;
  for (const char c : points) {
    if (c != 'a' && c != 'b' && c != 'e') return {};
    types.emplace_back(c == 'a' ? "FAIL" : c == 'b' ? "BEGIN" : "END");
  }
  return types.empty() ? std::nullopt : std::optional(text::join(types, ","));
}

std::optional<std::string> mail_points_of_types(const std::string& types) {
  std::string points;
  for (const auto& type : text::split(types, ',')) {
    if (type == "NONE") return "n";
    if (type == "ALL") return "abe";
    if (type != "FAIL" && type != "BEGIN" && type != "END") return {};
    points += type == "FAIL" ? 'a' : type == "BEGIN" ? 'b' : 'e';
  }
  return points;
}

}  // namespace hortator::launching

#include "launch/job/sweep.hpp"

#include <algorithm>
#include <hortator/error.hpp>
#include <nlohmann/json.hpp>

#include "core/text/text.hpp"

namespace hortator::launching {
namespace {

// Slurm's usual limit for the numbers of an array.
constexpr std::size_t max_tasks = 1000;

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

// "{NAME}" in the text whose NAME is not swept over; empty if there is none.
std::string unknown_placeholder(const std::string& text, const std::vector<SweepAxis>& axes) {
  for (auto begin = text.find('{'); begin != std::string::npos; begin = text.find('{', begin + 1)) {
    const auto end =
        text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-", begin + 1);
    if (end == std::string::npos || text[end] != '}' || end == begin + 1) continue;
    const auto name = text.substr(begin + 1, end - begin - 1);
    if (std::ranges::none_of(axes, [&](const SweepAxis& axis) { return axis.name == name; })) return name;
  }
  return "";
}

void check_placeholders(const std::vector<SweepAxis>& axes, const std::vector<std::string>& command) {
  for (const auto& part : command) {
    const auto name = unknown_placeholder(part, axes);
    if (name.empty()) continue;
    throw UsageError({.what = text::concat(text::quote(part), ": the sweep has no values for {", name, "}"),
                      .hint = text::concat("use --over ", name, "=VALUE,VALUE, or another name in braces")});
  }
}

bool mentions(const std::vector<std::string>& command, const std::string& placeholder) {
  return std::any_of(command.begin(), command.end(),
                     [&](const auto& part) { return part.find(placeholder) != std::string::npos; });
}

std::vector<std::string> command_of(const SweepTask& task, const std::vector<std::string>& command) {
  auto parts = command;
  for (const auto& [name, value] : task.arguments) {
    const auto placeholder = "{" + name + "}";
    if (mentions(command, placeholder)) {
      for (auto& part : parts) replace_all(part, placeholder, value);
    } else {
      parts.insert(parts.end(), {"--" + name, value});
    }
  }
  return parts;
}

std::size_t count_tasks(const std::vector<SweepAxis>& axes) {
  std::size_t count = 1;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto is_same = [&](const SweepAxis& other) { return other.name == axes[i].name; };
    if (std::any_of(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(i), is_same)) {
      throw UsageError(
          {.what = "--over: " + text::quote(axes[i].name) + " is given twice", .hint = "list all its values once"});
    }
    count *= axes[i].values.size();
    if (count <= max_tasks) continue;
    throw UsageError({.what = text::concat("The sweep has more than ", max_tasks, " tasks"),
                      .why = "schedulers limit the size of an array",
                      .hint = "use fewer values, or several sweeps"});
  }
  return count;
}

}  // namespace

SweepAxis parse_axis(const std::string& text, const std::string& flag) {
  const auto end = text.find('=');
  SweepAxis axis{.name = text.substr(0, end)};
  while (axis.name.starts_with('-')) axis.name.erase(0, 1);
  if (end != std::string::npos) axis.values = text::split(text.substr(end + 1), ',');
  const bool has_empty = std::find(axis.values.begin(), axis.values.end(), "") != axis.values.end();
  if (!axis.name.empty() && !axis.values.empty() && !has_empty) return axis;
  throw UsageError({.what = text::concat(flag, ": expected NAME=VALUE,VALUE,..., got ", text::quote(text)),
                    .hint = "such as --over lr=0.1,0.01"});
}

std::vector<SweepTask> sweep_tasks(const std::vector<SweepAxis>& axes, const std::vector<std::string>& command) {
  const auto count = count_tasks(axes);
  check_placeholders(axes, command);
  std::vector<SweepTask> tasks(count);
  for (std::size_t i = 0; i < count; ++i) {
    auto rest = i;
    auto block = count;
    for (const auto& axis : axes) {
      block /= axis.values.size();
      tasks[i].arguments.emplace_back(axis.name, axis.values[rest / block]);
      rest %= block;
    }
    tasks[i].command = command_of(tasks[i], command);
  }
  return tasks;
}

std::string to_json(const SweepTask& task, int number) {
  nlohmann::ordered_json arguments = nlohmann::ordered_json::object();
  for (const auto& [name, value] : task.arguments) arguments[name] = value;
  const nlohmann::ordered_json json = {
      {"schema_version", 1}, {"task", number}, {"arguments", arguments}, {"command", task.command}};
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace hortator::launching

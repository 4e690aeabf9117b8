#include "options.hpp"

#include <algorithm>
#include <charconv>
#include <hortator/error.hpp>
#include <hortator/state.hpp>
#include <sstream>

namespace example {
namespace {

template <typename Number>
Number parsed(const std::string& name, const std::string& value, Number lowest, const std::string& expected) {
  Number number{};
  const auto* end = value.data() + value.size();
  const auto result = std::from_chars(value.data(), end, number);
  if (result.ec == std::errc() && result.ptr == end && number >= lowest) return number;
  throw hortator::UsageError({.what = "--" + name + ": expected " + expected + ", got '" + value + "'"});
}

std::string shown(double value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

}  // namespace

Options::Options(int argc, const char* const* argv, std::string program, std::string purpose)
    : rest_(argv + 1, argv + argc), program_(std::move(program)), purpose_(std::move(purpose)) {}

std::int64_t Options::number(const std::string& name, std::int64_t value, const std::string& help,
                             std::int64_t lowest) {
  describe("--" + name + " N", help + " (default " + std::to_string(value) + ")");
  std::string given;
  return take(name, given) ? parsed(name, given, lowest, "a whole number from " + std::to_string(lowest)) : value;
}

double Options::real(const std::string& name, double value, const std::string& help) {
  describe("--" + name + " X", help + " (default " + shown(value) + ")");
  std::string given;
  return take(name, given) ? parsed(name, given, 0.0, "a number from 0") : value;
}

std::string Options::text(const std::string& name, const std::string& value, const std::string& help) {
  describe("--" + name + " TEXT", value.empty() ? help : help + " (default " + value + ")");
  std::string given;
  return take(name, given) ? given : value;
}

std::vector<std::string> Options::texts(const std::string& name, const std::string& help) {
  describe("--" + name + " TEXT...", help);
  std::vector<std::string> values;
  const auto found = std::find(rest_.begin(), rest_.end(), "--" + name);
  if (found == rest_.end()) return values;
  auto end = found + 1;
  while (end != rest_.end() && !end->starts_with("--")) values.push_back(*end++);
  rest_.erase(found, end);
  if (values.empty()) throw hortator::UsageError({.what = "--" + name + ": a value is missing"});
  return values;
}

std::string Options::choice(const std::string& name, const std::vector<std::string>& choices, const std::string& help) {
  std::string all;
  for (const auto& one : choices) all += (all.empty() ? "" : ", ") + one;
  auto value = text(name, choices.front(), help + ": " + all);
  if (std::find(choices.begin(), choices.end(), value) != choices.end()) return value;
  throw hortator::UsageError({.what = "--" + name + ": expected one of " + all + ", got '" + value + "'"});
}

std::string Options::required(const std::string& name, const std::string& help) {
  auto value = text(name, "", help);
  const bool asks_for_help = std::find(rest_.begin(), rest_.end(), "--help") != rest_.end();
  if (!value.empty() || asks_for_help) return value;
  throw hortator::UsageError(
      {.what = "--" + name + ": a value is missing", .hint = program_ + " --help lists the options"});
}

bool Options::flag(const std::string& name, const std::string& help) {
  describe("--" + name, help);
  const auto found = std::find(rest_.begin(), rest_.end(), "--" + name);
  if (found == rest_.end()) return false;
  rest_.erase(found);
  return true;
}

std::filesystem::path Options::run_dir() {
  return text("run-dir", "runs/" + program_, "folder of logs and checkpoints");
}

bool Options::help() const {
  if (std::find(rest_.begin(), rest_.end(), "--help") != rest_.end()) {
    std::ostringstream out;
    out << "usage: " << program_ << " [option...]    " << purpose_ << "\n\noptions:";
    for (const auto& [usage, help] : described_)
      out << "\n  " << usage << std::string(usage.size() < 22 ? 22 - usage.size() : 1, ' ') << help;
    hortator::State().print(out.str());
    return true;
  }
  if (rest_.empty()) return false;
  throw hortator::UsageError(
      {.what = "Unknown option '" + rest_.front() + "'", .hint = program_ + " --help lists the options"});
}

bool Options::take(const std::string& name, std::string& value) {
  const auto option = "--" + name;
  for (auto argument = rest_.begin(); argument != rest_.end(); ++argument) {
    if (argument->starts_with(option + "=")) {
      value = argument->substr(option.size() + 1);
      rest_.erase(argument);
      return true;
    }
    if (*argument != option) continue;
    if (argument + 1 == rest_.end()) throw hortator::UsageError({.what = option + ": a value is missing"});
    value = argument[1];
    rest_.erase(argument, argument + 2);
    return true;
  }
  return false;
}

void Options::describe(const std::string& usage, const std::string& help) { described_.emplace_back(usage, help); }

}  // namespace example

#include "launch/command_arguments.hpp"

#include <hortator/error.hpp>
#include <optional>

#include "core/text/text.hpp"

namespace hortator::launching {
namespace {

constexpr std::string_view blanks = " \t\n";

/// Takes a command apart, character by character.
class ArgumentReader {
 public:
  void take(char c) {
    if (is_escaped_) {
      is_escaped_ = false;
      add(c);
    } else if (c == '\\' && quote_ != '\'') {
      is_escaped_ = true;
    } else if (quote_ != 0) {
      c == quote_ ? static_cast<void>(quote_ = 0) : add(c);
    } else if (c == '\'' || c == '"') {
      quote_ = c;
      argument_ = argument_.value_or("");
    } else if (blanks.find(c) != std::string_view::npos) {
      end_argument();
    } else {
      add(c);
    }
  }
  bool is_open() const { return quote_ != 0 || is_escaped_; }
  std::vector<std::string> finish() {
    end_argument();
    return std::move(arguments_);
  }

 private:
  void add(char c) { argument_ = argument_.value_or("") + c; }
  void end_argument() {
    if (argument_) arguments_.push_back(*std::move(argument_));
    argument_.reset();
  }

  std::vector<std::string> arguments_;
  std::optional<std::string> argument_;
  char quote_ = 0;
  bool is_escaped_ = false;
};

}  // namespace

std::vector<std::string> command_arguments(std::string_view setting, std::string_view command) {
  ArgumentReader reader;
  for (const char c : command) reader.take(c);
  const bool is_open = reader.is_open();
  auto arguments = reader.finish();
  if (!is_open && !arguments.empty() && !arguments.front().empty()) return arguments;
  throw UsageError({.what = text::concat(
                        setting, ": ", is_open ? "a quote or a backslash is left open in " : "expected a command, got ",
                        text::quote(command)),
                    .hint = "write a program and its arguments, such as 'rsync -a {} host:backup'"});
}

std::vector<std::string> with_file(std::vector<std::string> arguments, const std::string& file) {
  constexpr std::string_view mark = "{}";
  bool has_mark = false;
  for (auto& argument : arguments) {
    for (std::size_t at = 0; (at = argument.find(mark, at)) != std::string::npos; at += file.size()) {
      argument.replace(at, mark.size(), file);
      has_mark = true;
    }
  }
  if (!has_mark) arguments.push_back(file);
  return arguments;
}

}  // namespace hortator::launching
